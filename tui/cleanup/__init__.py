"""Clean up old runs by your own rules.

The commands open `screen.CleanUpScreen` and delete the confirmed runs: nothing here deletes a run, or knows the deck.
"""
