"""Agent files of other programs, each form with its own reader.

Uses the fields of a preset; does not search for files. A file grants nothing, and its restrictions are enforced by the
preset, or the file is refused.
"""
