"""Benchmarks of a non-editable install; each figure stands beside its floor from the same run."""
