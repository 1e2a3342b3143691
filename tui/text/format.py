"""Figures, times, paths and errors in readable form. `core.run.describe` describes the activity of runs."""

from __future__ import annotations

from functools import lru_cache

from ...core.errors import SubdeckError, explained
from ...core.paths import at_home, is_demo
from ...core.run.describe import moment, runs_word
from ...core.run.snapshot import Counts, Queued, RunSnapshot
from ...core.text.plain import one_line, plain
from .cells import cells


@lru_cache(4096)
def _local_time(second: str) -> str:
    read = moment(second + "+00:00")
    return read.astimezone().strftime("%H:%M:%S") if read else ""


def local_time(iso: str) -> str:
    """Return the local time of day, `20:12:34`."""
    return _local_time(iso[:19])


def short_path(path: str, width: int | None = None) -> str:
    """Return a path with `~` for the home directory, cut in the middle to `width` cells."""
    shown = one_line(at_home(path))
    if width is None or cells(shown) <= width:
        return shown
    half = max(1, (width - 1) // 2)
    return f"{shown[:half]}…{shown[-(width - 1 - half) :]}" if width > 2 else shown[:width]


def tries(run: RunSnapshot) -> str:
    """Return `try 2/3` from the second attempt on; empty for the first."""
    attempt = 1 if isinstance(run.state, Queued) else run.state.attempt
    if attempt < 2:
        return ""
    return f"try {attempt}/{run.meta.max_attempts}" if run.meta.max_attempts > 1 else f"try {attempt}"


def farewell(counts: Counts) -> str:
    """Return the line printed after quitting; empty if no run is running."""
    if not counts.running or is_demo():
        return ""
    verb, them = ("is", "it") if counts.running == 1 else ("are", "them")
    return f"{runs_word(counts.running)} {verb} still running. subdeck status shows {them}."


def format_error(error: BaseException) -> str:
    """Return the error, its place and the way out, safe for the screen; a path as in `short_path`."""
    return plain(at_home(str(explained(error))))


def brief_error(error: Exception) -> str:
    """Return the error and the way out in one line, for a dialog whose fields show the place."""
    return one_line(error.brief) if isinstance(error, SubdeckError) else one_line(format_error(error))
