"""What a child may do: rules for tools, commands and paths, and what each decides.

Everything here is pure but for the working trees that paths are compared with.
"""
