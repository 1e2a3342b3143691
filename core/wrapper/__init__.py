"""The small process that supervises one child: its queue, its limits, its records, its result.

Runners start it by its command line; others import only `replay`. It knows nothing of settings, presets or launching.
"""
