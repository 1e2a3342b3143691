"""The list of runs that `subdeck status` prints, without what reads options: many people have it in a prompt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from ..engine import Engine
from ..project.registry import count
from ..run import describe
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from ._table import Column, table
from .output import run_to_end, say, say_lines, terminal_width

LAST = 20
"""Finished runs that are shown unless all are asked for."""

DOING = 160
"""Characters of what a run does or how it ended."""

COLUMNS = (
    Column(13),
    Column(6),
    Column(20, least=8),
    Column(60, least=10),
    Column(DOING, least=12),
    Column(9, right=True),
    Column(6, right=True),
)
AGENT = Column(16, least=4)
"""Before what a run does, if runs of several agents are listed."""
HOST = Column(20, least=4)
"""Before what a run does, where one of another machine is listed."""
ADDED_AT = 4

EMPTY = """\
No runs in {place} yet.
Start one with:  subdeck run PRESET "what to do"
subdeck presets lists the presets; subdeck without a command opens the app."""


def main(*, show_all: bool) -> int:
    """Do what `subdeck status` does, with or without `--all`; return the exit code."""

    def show() -> None:
        engine = Engine.open()
        show_list(engine, listed(engine, show_all=show_all), show_all=show_all)

    return run_to_end(show)


def listed(engine: Engine, *, show_all: bool) -> Sequence[RunSnapshot]:
    """Return the runs that are listed where none is named."""
    return engine.snapshots(last=None if show_all else LAST)


def show_list(engine: Engine, runs: Sequence[RunSnapshot], *, show_all: bool) -> None:
    """Print these runs, where none was named."""
    if not runs:
        say(EMPTY.format(place=one_line(engine.project.root)))
        return
    say_lines(rows(runs))
    more = "; --all shows every run" if not show_all and len(runs) >= LAST else ""
    say(f"\n{totals(runs)}{more}")
    if any(map(describe.is_held, runs)):
        say(f"{describe.QUEUE_HELD}.")
    if (standing := engine.standing()) and standing.words:
        say(standing.words)


def rows(runs: Sequence[RunSnapshot]) -> list[str]:
    now, clock = datetime.now(UTC), time.monotonic()
    columns, cells = (
        COLUMNS,
        [
            (
                describe.state(run, silent=silence is not None),
                run.meta.short_id,
                run.meta.title,
                run.meta.description or run.meta.task,
                describe.doing(run, DOING) if silence is None else describe.doing_silently(run, silence, DOING),
                describe.elapsed(run, now),
                describe.tokens_used(run.usage),
            )
            for run in runs
            for silence in (run.silence(clock),)
        ],
    )
    if any(run.is_remote for run in runs):
        columns = (*columns[:ADDED_AT], HOST, *columns[ADDED_AT:])
        cells = [(*row[:ADDED_AT], run.host, *row[ADDED_AT:]) for row, run in zip(cells, runs, strict=True)]
    if len({run.meta.agent for run in runs}) > 1:
        columns = (*columns[:ADDED_AT], AGENT, *columns[ADDED_AT:])
        cells = [(*row[:ADDED_AT], run.meta.agent, *row[ADDED_AT:]) for row, run in zip(cells, runs, strict=True)]
    asked = {describe.doing(run, DOING) for run in runs if run.is_waiting}
    return table(columns, cells, terminal_width(), asked)


def totals(runs: Sequence[RunSnapshot]) -> str:
    """Count these runs, and say how many are not counted because they are not this user's."""
    clock = time.monotonic()
    silent = sum(run.silence(clock) is not None for run in runs)
    foreign = sum(run.foreign for run in runs)
    return describe.counted(count(runs), silent) + (f"; {foreign} untrusted, not counted" if foreign else "")
