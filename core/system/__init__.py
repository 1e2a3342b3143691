"""What the operating system offers, made safe to use: files, locks, processes, the log of faults.

Everything may import from here; it knows nothing of runs.
"""
