"""Presets: the list, and the dialogs that edit and copy their files.

The deck has `list.PresetList`, the commands open the dialogs of `editor` and `copy`; `draft` decides where presets are
saved. It knows the engine, but not runs.
"""
