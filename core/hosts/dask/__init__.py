"""Hosts of a dask cluster. Only this package imports distributed."""
