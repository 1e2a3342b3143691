"""Tiles: the transcripts of a few runs side by side, live."""
