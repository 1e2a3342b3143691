"""Updates of the engine as messages, and the files of the shown run in pieces.

Every package may import `bridge`, the app's only way to call the engine, its messages, and `repeater`, which repeats
work under supervision. `lines` and `reader` are for packages that show a transcript. It knows nothing of screens, keys
or drawing.
"""
