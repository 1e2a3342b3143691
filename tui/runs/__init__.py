"""The list of runs: what is in it, in which order, and what each row says."""
