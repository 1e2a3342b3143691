"""The command line: small groups of commands. A module is imported when one of its commands is called.

Only the program's entry point imports from it. It knows the engine and the tools for parents, but not the app.
"""
