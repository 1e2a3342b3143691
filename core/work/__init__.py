"""The work of runs: where it is done and recorded, and the git operations on it.

Start with `operation` for the possible actions, a module for each, and `acts` for undo. See `changes` for a run's
changes; `worktree`, `base` and `remote` for where a run works; `records` for its files on disk. Neither a list of runs
nor the wrapper of a run outside git loads any of them.
"""
