"""Put runs and figures into the words, glyphs and columns an operator reads; pure."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from ..core.plain import one_line
from ..core.runs import Counts, RunReason, RunSnapshot, RunStatus

GLYPHS: dict[RunStatus, str] = {
    RunStatus.RUNNING: "●",
    RunStatus.QUEUED: "◌",
    RunStatus.COMPLETED: "✓",
    RunStatus.FAILED: "✗",
    RunStatus.ABORTED: "⊘",
}
UNKNOWN_GLYPH = "?"
"""For a run that another machine holds: its status is only the last one written."""

STATUS_STYLES: dict[RunStatus, str] = {
    RunStatus.RUNNING: "$primary",
    RunStatus.QUEUED: "$text-muted",
    RunStatus.COMPLETED: "$text-success",
    RunStatus.FAILED: "$text-error",
    RunStatus.ABORTED: "$text-warning",
}

NOTHING = "–"


def glyph(run: RunSnapshot) -> str:
    return UNKNOWN_GLYPH if run.unknown else GLYPHS[run.status]


def state(run: RunSnapshot) -> str:
    """Glyph and word, never one without the other."""
    return f"{glyph(run)} {run.status.value}"


def doing(run: RunSnapshot, limit: int = 400) -> str:
    """What a run does now, where it waits, or how it ended, as one line."""
    if run.unknown:
        return "held by another machine: only its files are seen here"
    if run.status is RunStatus.QUEUED:
        return waiting(run)
    if run.status is RunStatus.RUNNING:
        return one_line(run.activity, limit) or "starting"
    message = one_line(run.message, limit)
    if run.reason in (None, RunReason.DONE, RunReason.FINALIZED):
        return message or NOTHING
    if message.startswith(run.reason):
        return message
    return f"{run.reason}: {message}" if message else str(run.reason)


def waiting(run: RunSnapshot) -> str:
    """`queued, 2 ahead`; without a known place just `queued`."""
    match run.ahead:
        case None:
            return "queued"
        case 0:
            return "queued, next"
        case ahead:
            return f"queued, {ahead} ahead"


def elapsed(run: RunSnapshot, now: datetime) -> str:
    """How long a run took or has taken; a queued one, how long it waits."""
    if run.duration_ms is not None and run.is_terminal:
        return clock(run.duration_ms / 1000)
    if run.is_terminal and run.started_at is None:
        return NOTHING
    begin = moment(run.started_at or run.meta.created_at)
    end = moment(run.ended_at) if run.ended_at else now
    return NOTHING if begin is None or end is None else clock((end - begin).total_seconds())


def clock(seconds: float) -> str:
    """`0:42`, `1:02:03`, `2d 3h`; never negative, whatever the wall clock did."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 24:
        days, hour = divmod(hours, 24)
        return f"{days}d {hour}h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def moment(iso: str) -> datetime | None:
    """Read one of our timestamps; None when a foreign file holds something else."""
    try:
        read = datetime.fromisoformat(iso)
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


@lru_cache(4096)
def _local_time(second: str) -> str:
    read = moment(second + "+00:00")
    return read.astimezone().strftime("%H:%M:%S") if read else ""


def local_time(iso: str) -> str:
    """Time of day where the operator sits, `20:12:34`."""
    return _local_time(iso[:19])


def tokens(count: int) -> str:
    """`812`, `3.2k`, `120k`, `1.2M`; nothing yet is a dash."""
    if not count:
        return NOTHING
    if count < 1000:
        return str(count)
    if count < 9950:
        return f"{count / 1000:.1f}k"
    if count < 999_500:
        return f"{count / 1000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


def dollars(cost: float) -> str:
    """`$0.31`; empty when nothing was charged."""
    if cost <= 0:
        return ""
    return f"${cost:.2f}" if cost >= 0.005 else "<$0.01"


def short_path(path: str, width: int | None = None) -> str:
    """A path with `~` for the home directory, cut in the middle."""
    home = os.path.expanduser("~")
    shown = one_line("~" + path[len(home) :] if path == home or path.startswith(home.rstrip("/") + "/") else path)
    if width is None or cell_len(shown) <= width:
        return shown
    half = max(1, (width - 1) // 2)
    return f"{shown[:half]}…{shown[-(width - 1 - half) :]}" if width > 2 else shown[:width]


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Make text exactly `width` cells wide: cut with `…`, padded at the other side."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width)
    return " " * (width - length) + text if right else text + " " * (width - length)


def two_sided(left: Content, right: Content, width: int) -> Content:
    """One line with something at both ends; what is at the right stays whole as long as it can."""
    room = width - right.cell_length
    if room <= 0:
        return left.truncate(width, ellipsis=True)
    shown = left.truncate(max(0, room - 1), ellipsis=True)
    return Content.assemble(shown, " " * (room - shown.cell_length), right)


def runs_word(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def background_figure(counts: Counts) -> str:
    """The footer's figure, in the words of the parent agents' status line."""
    return f"bg: {counts.running} running / {counts.total} total"


def farewell(counts: Counts) -> str:
    """What quitting leaves behind, or an empty string."""
    if not counts.running:
        return ""
    verb = "goes" if counts.running == 1 else "go"
    them = "it" if counts.running == 1 else "them"
    return f"{runs_word(counts.running)} {verb} on in the background; subdeck status shows {them}"
