"""The built-in offline agent: reads the files around it without a model, with pi's flags and modes.

The engine only uses its command line; it imports nothing of subdeck but `core.text.plain`.
"""
