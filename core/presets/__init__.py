"""Presets: where their files are, and how they are read, checked, written, copied and deleted.

Uses settings, models and tools; independent of launching.
"""
