"""How hard a model is told to think."""

from __future__ import annotations

from collections.abc import Sequence

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""From least to most; `max` is not known to every agent."""


def offered_level(level: str, offered: Sequence[str]) -> str:
    """Answer the level itself, or the highest that is offered below it."""
    below = [other for other in offered if LEVELS.index(other) <= LEVELS.index(level)]
    return below[-1] if below else level
