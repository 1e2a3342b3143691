"""The fields of a run: a table of them, the layers that set them, and the layer that decided each.

New fields of presets, calls or settings are added here: all code that reads or shows fields uses the table. A new limit
is only added to `run.limits`: from there it gets into the table, the settings, the record and the launch dialog.
"""
