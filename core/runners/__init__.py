"""Runners: how the wrapper of a run is started. `process` chooses among them; none knows anything of agents."""
