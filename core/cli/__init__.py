"""The command line: one module for each command, imported when the command is called.

Nothing imports from it but the program's entry point.
"""
