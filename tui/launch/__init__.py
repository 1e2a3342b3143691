"""Launching: the dialog, what its fields hold, what it learns from files, what it starts.

The commands open `screen.LaunchScreen` with a `form.LaunchForm` and a `memory.Remembered`. It knows the engine and
the bridge, and nothing of the deck.
"""
