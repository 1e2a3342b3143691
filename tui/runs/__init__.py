"""The list of runs: its content, its order, and the texts of its rows.

The deck has `list.RunList`, `store.RunStore` and the filter line; only `list` draws. It knows snapshots and updates,
but not the engine or actions on runs.
"""
