"""One run opened: what is known of it, tab by tab.

Only `screen` is imported from outside. Pages are read and laid out in threads; it knows nothing of the deck.
"""
