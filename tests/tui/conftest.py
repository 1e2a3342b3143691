"""Shared by the tests of the app."""

from textual import _wait

# Textual waits in steps of 20 ms until the app has nothing to do: after each of dozens of keys, in a thousand tests.
_wait.SLEEP_GRANULARITY = 0.004
_wait.SLEEP_IDLE = 0.0004
