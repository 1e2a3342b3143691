"""Put figures, times and paths into the columns an operator reads; pure. What runs do is said by `core.describe`."""

from __future__ import annotations

import os
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from ...core.run.describe import moment, runs_word
from ...core.run.model import Counts, RunSnapshot
from ...core.text.plain import one_line, plain


@lru_cache(4096)
def _local_time(second: str) -> str:
    read = moment(second + "+00:00")
    return read.astimezone().strftime("%H:%M:%S") if read else ""


def local_time(iso: str) -> str:
    """Time of day where the operator sits, `20:12:34`."""
    return _local_time(iso[:19])


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


def tries(run: RunSnapshot) -> str:
    """`try 2/3` from the second on; else nothing."""
    if run.attempt < 2:
        return ""
    return f"try {run.attempt}/{run.meta.max_attempts}" if run.meta.max_attempts > 1 else f"try {run.attempt}"


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


def format_error(error: Exception) -> str:
    """What, where, what to do, fit for the screen."""
    return plain(str(error)) or one_line(type(error).__name__)


def notify_failure(node: Widget, event: Worker.StateChanged) -> None:
    """Say that work beside the event loop went wrong; nothing where it ended otherwise."""
    error = event.worker.error
    if event.state is WorkerState.ERROR and error is not None:
        text = format_error(error) if isinstance(error, Exception) else type(error).__name__
        node.notify(text, severity="error", markup=False)
