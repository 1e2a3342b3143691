"""Which panes are on the screen; pure."""

from __future__ import annotations

from .actions import PANES, Place

WIDE = 100
"""From this many columns on the presets have their own place beside the runs."""


def visible_panes(width: int, place: Place, zoomed: Place | None) -> frozenset[Place]:
    """Answer the panes to show when `place` has the focus; on a narrow screen presets come over the runs."""
    if zoomed is not None:
        return frozenset({zoomed})
    if width >= WIDE:
        return frozenset(PANES)
    above = Place.PRESETS if place is Place.PRESETS else Place.RUNS
    return frozenset({above, Place.TRANSCRIPT})
