"""The deck: the screen with presets, runs and a transcript, and how they share it.

The app opens `screen.MainScreen`, and commands work on it. It knows the features that it shows, and loads a command or
a dialog only when needed.
"""
