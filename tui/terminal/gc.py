"""Garbage collection out of the way of keys: what is there after the first load stays there."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widget import Widget

QUIET = 1.0
"""Seconds after the first load: the screen is painted, and the first key mostly not yet pressed."""

USUAL = (700, 10, 10)
"""Python's own thresholds: a quick start looks for garbage less often."""

_frozen: list[bool] = []


def freeze_once(widget: Widget) -> None:
    """Collect once, and look no more at what survives: a full collection costs a frame, and comes with every scroll."""
    if _frozen:
        return
    _frozen.append(True)
    widget.set_timer(QUIET, _freeze)


def _freeze() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*USUAL)
