"""The files of runs on a host: snapshots are sent there through git, and the runs' changes are sent back."""
