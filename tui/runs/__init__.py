"""The list of runs: what is in it, in which order, and what each row says.

The deck has `list.RunList`, `store.RunStore` and the line that filters; only `list` draws. It knows snapshots
and updates, and nothing of the engine or of what can be done to a run.
"""
