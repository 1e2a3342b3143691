"""Cleaning up old runs by the operator's own rules.

The commands open `screen.CleanUpScreen` and delete what was agreed on: nothing here deletes a run, or knows the deck.
"""
