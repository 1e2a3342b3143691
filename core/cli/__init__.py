"""The command line: small groups of commands, whose module is imported when one of them is called.

Only the program's entry point imports from it. It knows the engine and the tools for parents, and nothing of the app.
"""
