"""Talk to runs from the deck: the line for messages, and the block that shows requests."""
