"""Benchmarks of a non-editable install; each figure is shown with its floor from the same run."""
