"""The reader that comes with subdeck and uses no model, as an agent; the program itself is `core/offline_agent/`."""
