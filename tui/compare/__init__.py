"""Runs beside each other: what each came to, and what differs between what two have left."""
