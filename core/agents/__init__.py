"""Child agents: how each is found and started, and how its stream is read.

Knows the nouns of a run; knows nothing of projects, of launching or of who watches.
"""
