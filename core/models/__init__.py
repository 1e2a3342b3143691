"""Models: what is known of them, and what a reference such as `provider/id`, a bare id or `@role` stands for.

Knows settings; knows nothing of agents or runs.
"""
