"""The deck: the screen that holds presets, runs and a transcript, and how they share it."""
