"""Runners start the wrappers of runs.

A launch imports `process`, which chooses among them. They know the records of runs, but nothing about agents or
presets.
"""
