"""What the operating system offers, made safe to use: processes, growing files, files that remember.

Knows nothing of runs.
"""
