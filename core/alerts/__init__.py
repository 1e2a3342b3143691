"""Alerts for the user away from the terminal: what they contain, and how any process queues them for the sender."""
