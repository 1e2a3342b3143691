"""Known models, and how references such as `provider/id`, a bare id or `@role` resolve.

Depends on settings, not on agents or runs.
"""
