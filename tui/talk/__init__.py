"""Talking to runs from the deck: the line in which something is said, and the block that shows what is asked."""
