"""The runs of a project: read, followed, stopped, deleted, explained.

The engine provides these; they know nothing about launching a run.
"""
