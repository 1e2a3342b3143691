"""What may be asked of a run: a table of fields, the layers that set them, and which layer decided each.

A new field of presets, calls or settings begins here: whoever reads or shows fields reads the table.
"""
