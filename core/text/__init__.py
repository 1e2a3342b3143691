"""Foreign text made fit to be shown or edited. Imports nothing of ours."""
