"""The built-in offline agent: a program with pi's flags and modes, and no model, that reads the files around it.

The engine knows it by its command line only; of ours it imports nothing but `core.text.plain`.
"""
