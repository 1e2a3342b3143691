"""Launching: the dialog, the values of its fields, facts from files, and the start of the runs.

The commands open `screen.LaunchScreen` with a `form.LaunchForm` and a `memory.Remembered`. It knows the engine and the
bridge, but not the deck.
"""
