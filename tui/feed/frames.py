"""How often the screen is drawn anew while runs change; pure.

A frame costs some ten milliseconds, whatever of it changed. Where few runs write, each step is shown; where very many
do, nobody can read them, and the time is better left to who writes.
"""

from __future__ import annotations

FRAME = 1 / 40
"""Seconds between two frames at the least."""
PER_RUN = 1 / 1200
"""Seconds more for each run that changed in the frame before."""
SLOWEST = 1 / 8


def frame_after(changed: int) -> float:
    """Answer how many seconds to wait after a frame in which so many runs have changed."""
    return min(SLOWEST, FRAME + changed * PER_RUN)
