"""git, by its command, as a user would run it: repositories, snapshots of their files, differences, worktrees, merges.

It knows nothing of runs. A checkout may be anybody's: nothing that stands in one makes git run a program, or changes
anything of the user's that nobody asked for.
"""
