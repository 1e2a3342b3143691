"""Agents: finding and starting each kind, and reading its stream.

Depends on the types of runs only, not on projects, launching or user interfaces.
"""
