"""Texts put into columns and rows. Knows no widget."""
