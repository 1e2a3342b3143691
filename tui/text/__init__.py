"""Text that fits the screen: cells, figures, times, paths.

Everything in the app may import from here. It knows the nouns of a run, and no widget of this app.
"""
