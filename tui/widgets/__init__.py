"""Widgets, one each."""
