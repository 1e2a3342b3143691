"""The hosts that execute runs: their state as known by the relay, in the header, in toasts and in a view."""
