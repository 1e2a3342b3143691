"""The terminal itself: lent to other programs, told escape sequences, and what Textual keeps private about it."""
