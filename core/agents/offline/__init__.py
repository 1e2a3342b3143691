"""subdeck's built-in reader as an agent; it uses no model. Its program is `core/offline_agent/`."""
