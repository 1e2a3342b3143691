"""Runs side by side: the result of each, and the difference between the files of two."""
