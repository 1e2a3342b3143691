"""Runners: how the wrapper of a run is started."""
