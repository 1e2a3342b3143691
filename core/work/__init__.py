"""The work of runs: where it is done and recorded, and the git operations on it.

Read `operation` for what can be done, a module for each operation, and `acts` for taking it back; `changes` for what a
run changed; `worktree`, `base` and `remote` for where a run works; `records` for what is kept of that on the disk.
Nothing of it is loaded by a list of runs, nor by the wrapper of a run outside git.
"""
