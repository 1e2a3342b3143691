"""Put runs and figures into the words and glyphs that people read; pure, and the same on every surface."""

from __future__ import annotations

from datetime import UTC, datetime

from ..text.plain import one_line
from .model import Counts, RunReason, RunSnapshot, RunStatus

NO_MODEL = "No model was used: this is the built-in offline reader (offline/reader)."
"""How each answer of the offline agent begins; where there is room for one line only, the second one tells more."""
GLYPHS: dict[RunStatus, str] = {
    RunStatus.RUNNING: "●",
    RunStatus.QUEUED: "◌",
    RunStatus.COMPLETED: "✓",
    RunStatus.FAILED: "✗",
    RunStatus.ABORTED: "⊘",
}
UNKNOWN_GLYPH = "?"
"""For a run that another machine holds: its status is only the last one written."""

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
        return one_line(run.sentence, limit) or one_line(run.activity, limit) or "starting"
    message = one_line(run.message.removeprefix(NO_MODEL), limit) or one_line(run.message, limit)
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


def size_text(size: float) -> str:
    """`0 B`, `812 B`, `3.2 KB`, `120 MB`, `1.4 GB`."""
    if size < 1024:
        return f"{int(size)} B"
    for unit in ("KB", "MB", "GB"):
        size /= 1024
        if size < 1023.5 or unit == "GB":
            return f"{size:.1f} {unit}" if size < 9.95 else f"{size:.0f} {unit}"
    raise AssertionError("unreachable")


def runs_word(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def counted(counts: Counts) -> str:
    """`12 runs: 2 running (1 queued), 9 completed, 1 failed`; what there is none of is not named."""
    running = f"{counts.running} running" + (f" ({counts.queued} queued)" if counts.queued else "")
    figures = (
        (counts.running, running),
        (counts.completed, f"{counts.completed} completed"),
        (counts.failed, f"{counts.failed} failed"),
        (counts.aborted, f"{counts.aborted} aborted"),
    )
    named = ", ".join(text for count, text in figures if count)
    return f"{runs_word(counts.total)}: {named}" if named else runs_word(counts.total)
