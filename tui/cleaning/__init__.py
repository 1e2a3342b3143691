"""Old runs leave: when the operator wants it, or by the settings."""
