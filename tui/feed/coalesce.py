"""Merge updates that the screen has not drawn yet into one, and say when it is drawn next; pure."""

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


FRAME_S = 1 / 40
"""Seconds between two frames at the least."""
PER_RUN_S = 1 / 1200
"""Seconds more for each run that changes."""
SLOWEST_S = 1 / 8
RECENTLY_S = 0.5
"""The runs that nobody looks at come all at once, a few times a second: frames in between are not to be faster."""


class FramePace:
    """Says how long to wait between two frames: the longer, the more runs change."""

    def __init__(self) -> None:
        self._most = 0
        self._most_at = 0.0

    def next_after(self, now: float, changed: int) -> float:
        """Return when the next frame is due after one at `now` in which so many runs have changed."""
        if changed >= self._most or now - self._most_at > RECENTLY_S:
            self._most, self._most_at = changed, now
        return now + min(SLOWEST_S, FRAME_S + self._most * PER_RUN_S)
