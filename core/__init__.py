"""The headless engine of subdeck: presets, runs, supervision, following."""

__version__ = "0.1.0"
