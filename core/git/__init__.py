"""git, run as a command as a user would run it: repositories, snapshots of their files, diffs, worktrees, merges.

It knows nothing of runs. A checkout is untrusted: nothing in it makes git run a program, or change anything of the
user's without a request.
"""
