"""One run: its nouns, its files, its events, and what they add up to.

Everything else may import from here; it imports nothing but `system`, `text`, `paths` and `errors`.
"""
