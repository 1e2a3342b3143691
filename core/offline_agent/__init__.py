"""The built-in offline agent: a child program with pi's flags and JSON mode, and no model, key or network behind it.

It really looks: four read-only tools on the working directory, chosen by the words of the task. A program of its own,
which the engine knows by its command line only; it imports nothing of ours but `core.text.plain`, so it starts quickly.
"""
