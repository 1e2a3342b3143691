"""Why a run needs you: one definition for the header, the list and the key that goes to the next one; pure."""

from __future__ import annotations

from enum import IntEnum

from .describe import GLYPHS, SILENT, SILENT_GLYPH, WAITS_GLYPH
from .model import RunReason, RunStatus
from .snapshot import RunSnapshot

_REQUESTED = (RunReason.STOPPED, RunReason.KILLED, RunReason.CANCELLED)
"""Requested ends: there is nothing to look at."""


class Need(IntEnum):
    """The most urgent first."""

    WAITING = 0
    """It has an open request."""
    FAILED = 1
    """It or its check failed, and its result is unread."""
    ASKS = 2
    """Its unread answer is a question."""
    SILENT = 3
    """It is running, but has written nothing for longer than usual, and you have not looked at it since."""
    NEW = 4
    """It is finished, and its result is unread: it can wait."""

    @property
    def needs_you(self) -> bool:
        """Whether it counts as a run that needs you. An unread result does not."""
        return self is not Need.NEW

    @property
    def glyph(self) -> str:
        return _GLYPHS[self]

    def counted(self, count: int) -> str:
        """`1 needs input`, `3 unread`."""
        match self:
            case Need.WAITING:
                return needing_input(count)
            case Need.FAILED:
                return f"{count} failed"
            case Need.ASKS:
                return "1 question" if count == 1 else f"{count} questions"
            case Need.SILENT:
                return f"{count} {SILENT}"
            case Need.NEW:
                return f"{count} unread"


_GLYPHS = {
    Need.WAITING: WAITS_GLYPH,
    Need.FAILED: GLYPHS[RunStatus.FAILED],
    Need.ASKS: WAITS_GLYPH,
    Need.SILENT: SILENT_GLYPH,
    Need.NEW: "•",
}


def needing_input(count: int) -> str:
    """Return `1 needs input`, `3 need input`."""
    return f"{count} {'needs' if count == 1 else 'need'} input"


def need_of(run: RunSnapshot, *, is_unread: bool, is_idle: bool) -> Need | None:
    """Return why a run needs you, or that its result is unread; None if neither.

    `is_unread`: its result is unread. `is_idle`: it is idle, and you have not looked at it since.
    """
    if run.is_waiting:
        return Need.WAITING
    if run.end is None:
        return Need.SILENT if is_idle else None
    if not is_unread or run.is_left_alone:
        return None
    if has_failed(run):
        return Need.FAILED
    if run.reason in _REQUESTED:
        return None
    return Need.ASKS if run.end.asks else Need.NEW


def has_failed(run: RunSnapshot) -> bool:
    """Return whether a run or its check failed; False for an untrusted run, and for one of a newer subdeck."""
    return (run.status is RunStatus.FAILED or (run.check is not None and run.check.failed)) and not run.is_left_alone
