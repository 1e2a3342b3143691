"""Presets: the list, and the dialogs that edit and copy their files.

The deck has `list.PresetList`, the commands open the dialogs of `editor` and `copy`; `draft` says where presets go. It
knows the engine, and nothing of runs.
"""
