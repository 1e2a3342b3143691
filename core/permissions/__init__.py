"""What an agent may do: rules for tools, commands and paths, and their decisions.

Everything here is pure, except for the working trees that paths are compared with.
"""
