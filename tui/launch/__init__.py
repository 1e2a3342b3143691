"""Launching: the dialog, what its fields hold, what it learns from files, what it starts."""
