"""Finding a text in all runs: the line in which it is typed, the hits as they come, and the filter's `text:`.

The search itself is the engine's; here are what is asked of it, and how hits are shown and opened.
"""
