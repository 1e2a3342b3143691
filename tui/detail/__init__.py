"""One run's details, tab by tab.

Only `screen` is imported from outside. Pages are read and laid out in threads; it does not know the deck.
"""
