"""The terminal itself: lending it to other programs, escape sequences, and Textual's private parts.

Everything in the app may import from here. It knows the number of runs, for the window's title, and nothing about
screens.
"""
