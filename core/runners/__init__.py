"""Runners: how the wrapper of a run is started. `process` gives each by its name; it knows nothing of agents."""
