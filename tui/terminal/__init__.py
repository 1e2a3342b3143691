"""The terminal itself: lent to other programs, told escape sequences, and what Textual keeps private about it.

Everything in the app may import from here. It knows how many runs there are, for the title of the window, and
nothing of screens.
"""
