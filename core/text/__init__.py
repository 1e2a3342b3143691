"""Foreign text made fit to be shown or edited, and foreign JSON decoded.

Everything may import from here; it imports nothing of ours.
"""
