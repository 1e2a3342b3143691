"""Presets: where they are looked for, how a file is read and checked, written, copied and deleted.

Knows settings, models and tools; knows nothing of launching.
"""
