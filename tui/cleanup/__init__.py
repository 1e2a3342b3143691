"""Cleaning up old runs by the operator's own rules."""
