"""The runs of a project as they stand: read, followed, stopped, deleted, explained.

The engine hands these out; they know nothing of how a run is launched.
"""
