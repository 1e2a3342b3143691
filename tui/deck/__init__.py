"""The deck: the screen that holds presets, runs and a transcript, and how they share it.

The app opens `screen.MainScreen`, and commands work on it. It knows the features that it shows, and no
command or dialog before one is asked for.
"""
