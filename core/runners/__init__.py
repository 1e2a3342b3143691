"""Runners: how the wrapper of a run is started.

A launch imports `process`, which chooses among them. They know what a run's records say, and nothing of
agents or presets.
"""
