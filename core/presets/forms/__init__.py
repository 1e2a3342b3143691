"""Agent files that are written for other programs, each form read into a preset as far as it can be kept to.

Knows the fields of a preset; knows nothing of where files are looked for. What a form grants is never taken from a
file, and what it forbids is enforced by the preset, or the file is refused.
"""
