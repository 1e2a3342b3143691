"""Foreign text made fit to be shown or edited. Everything may import from here; it imports nothing of ours."""
