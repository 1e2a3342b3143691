"""The small process that supervises a run's agent: its queue, limits, records and result.

Runners start it by its command line; other packages import only `replay`. It knows nothing of settings, presets or
launching.
"""
