"""Updates of the engine as messages, and the files of the shown run in pieces.

Anybody may import `bridge`, through which alone the app calls the engine, the messages that it posts, and `repeater`,
which does work again and again under supervision. `lines` and `reader` are for what shows a transcript. It knows
nothing of screens, keys or how anything is drawn.
"""
