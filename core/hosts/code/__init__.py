"""The files that a run on a host works with: snapshots sent there by git, and what came of them sent back."""
