"""What runs changed and where they did: worktrees, taking over what is good, keeping what is not taken over yet.

Nothing of it is loaded by a list of runs, nor by the wrapper of a run outside git.
"""
