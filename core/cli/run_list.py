"""The list of runs that `subdeck status` prints, without the option parser: many people have it in a prompt."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ..engine import Engine
from ..project.registry import count
from ..run import describe
from ..run.columns import AGENT, DOING, IN_STATUS, NOW, RunColumn, RunView
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from ._table import table
from .output import Piece, run_to_end, show, terminal_width

LAST = 20
"""Finished runs that are shown unless all are asked for."""

EMPTY = """\
No runs in {place} yet.
Start one with:  subdeck run PRESET "what to do"
subdeck presets lists the presets; subdeck without a command opens the app."""


def main(*, show_all: bool) -> int:
    """Execute `subdeck status`, with or without `--all`; return the exit code."""

    def status() -> None:
        engine = Engine.open()
        show(list_text(engine, listed(engine, show_all=show_all), show_all=show_all))

    return run_to_end(status)


def listed(engine: Engine, *, show_all: bool) -> Sequence[RunSnapshot]:
    """Return the runs to list if none is named."""
    return engine.snapshots(last=None if show_all else LAST)


def list_text(engine: Engine, runs: Sequence[RunSnapshot], *, show_all: bool) -> Iterator[Piece]:
    """Yield the list of these runs, if none was named."""
    if not runs:
        yield EMPTY.format(place=one_line(engine.project.root))
        return
    yield rows(runs)
    more = "; --all shows every run" if not show_all and len(runs) >= LAST else ""
    yield f"\n{totals(runs)}{more}"
    if any(map(describe.is_held, runs)):
        yield f"{describe.QUEUE_HELD}."
    if (spending := engine.limited_spending()) and spending.words:
        yield spending.words


def rows(runs: Sequence[RunSnapshot]) -> list[str]:
    now, clock = datetime.now(UTC), time.monotonic()
    remote = any(run.is_remote for run in runs)
    has_agents = len({run.meta.agent for run in runs}) > 1
    columns = [
        column for column in IN_STATUS if (remote or not column.needs_remote) and (has_agents or column is not AGENT)
    ]
    views = [RunView(run, run.silence(clock), DOING) for run in runs]
    cells = zip(*(_texts(column, views, now) for column in columns), strict=True)
    asked = {NOW.text(view) for view in views if view.run.is_waiting}
    return table([column.status for column in columns if column.status], list(cells), terminal_width(), asked)


def _texts(column: RunColumn, views: Sequence[RunView], now: datetime) -> list[str]:
    if column.time:
        return [column.time(view.run, now) for view in views]
    return list(map(column.status_text or column.text, views))


def totals(runs: Sequence[RunSnapshot]) -> str:
    """Return the counts of these runs, and how many are untrusted and not counted."""
    clock = time.monotonic()
    silent = sum(run.silence(clock) is not None for run in runs)
    foreign = sum(run.foreign for run in runs)
    return describe.counted(count(runs), silent) + (f"; {foreign} untrusted, not counted" if foreign else "")
