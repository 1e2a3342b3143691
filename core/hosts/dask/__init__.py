"""Hosts of a dask cluster: the one place that imports distributed."""
