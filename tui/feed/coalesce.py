"""Merge updates that the screen has not drawn yet into one; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

if TYPE_CHECKING:
    from ...core.project.follower import Update


def merged(earlier: Update | None, later: Update) -> Update:
    """Return one update that says what both say: the later state of each run, every end."""
    if earlier is None:
        return later
    gone = set(later.removed)
    runs = {run.run_id: run for run in earlier.runs if run.run_id not in gone}
    runs.update((run.run_id, run) for run in later.runs)
    removed = dict.fromkeys((*earlier.removed, *later.removed))
    return structs.replace(
        later,
        runs=tuple(runs.values()),
        removed=tuple(run_id for run_id in removed if run_id not in runs),
        ended=(*earlier.ended, *later.ended),
        presets_changed=earlier.presets_changed or later.presets_changed,
    )


FRAME = 1 / 40
"""Seconds between two frames at the least."""
PER_RUN = 1 / 1200
"""Seconds more for each run that changed in the frame before."""
SLOWEST = 1 / 8


def frame_after(changed: int) -> float:
    """Return how many seconds to wait after a frame in which so many runs have changed."""
    return min(SLOWEST, FRAME + changed * PER_RUN)
