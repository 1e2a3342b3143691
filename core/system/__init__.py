"""Safe access to the operating system: files, locks, processes, the log of faults.

Every other package may import it; it knows nothing about runs.
"""
