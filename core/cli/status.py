"""`subdeck status` and `wait`: list the runs, or block until some have ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from ..engine import Engine
from ..errors import SubdeckError, UsageError
from ..project.registry import count
from ..run import describe
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from .outcomes import run_document, why_line, worst
from .output import document, json_option, note, runs_argument, say, terminal_width
from .table import Column, table

LAST = 20
"""Finished runs that are shown unless all are asked for."""

DOING = 160
"""Characters of what a run does or how it ended."""

TIMED_OUT = 124
"""The exit code of `timeout(1)`."""

COLUMNS = (
    Column(11),
    Column(6),
    Column(20, least=8),
    Column(60, least=10),
    Column(DOING, least=12),
    Column(9, right=True),
    Column(6, right=True),
)

EMPTY = """\
No runs in {place} yet.
Start one with:  subdeck run PRESET "what to do"
subdeck presets lists the presets; subdeck without a command opens the app."""


@click.command("status")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--all", "show_all", is_flag=True, help="List every run of the project.")
@json_option
def status(refs: tuple[str, ...], show_all: bool, as_json: bool) -> None:
    """List runs, newest first: the active ones and the last 20, every one with --all, or only those named.

    Columns: state, id, preset, task, what the run is doing or how it ended, time, tokens. For the runs that are named,
    a line below says why each is not done, or how it ended.
    """
    if refs and show_all:
        raise UsageError("--all cannot be used with ids", where="status", hint="leave one of them out")
    engine = Engine.open()
    run_ids = engine.find(refs) if refs else None
    runs = engine.snapshots(run_ids, last=None if show_all else LAST)
    if as_json:
        document({"counts": count(runs), "runs": [run_document(engine, run) for run in runs]})
    elif runs:
        say("\n".join(_rows(runs)))
        if refs:
            lines = [f"{run.meta.short_id} {why_line(engine, run, engine.result(run.run_id))}" for run in runs]
            say("\n" + "\n".join(lines))
        more = "; --all shows every run" if not refs and not show_all and len(runs) >= LAST else ""
        say(f"\n{describe.counted(count(runs))}{more}")
    else:
        say(EMPTY.format(place=one_line(engine.project.root)))


@click.command("wait")
@runs_argument
@click.option(
    "--timeout", metavar="S", type=click.FloatRange(min=0), help="Give up after S seconds; the runs continue."
)
@json_option
def wait(refs: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
    """Wait until all these runs have ended.

    The exit code is 1 if one failed, else 3 if one was aborted, else 0; 124 if --timeout runs out first. ctrl-C ends
    only the waiting: the runs continue.
    """
    engine = Engine.open()
    run_ids = tuple(dict.fromkeys(engine.find(refs)))
    try:
        runs = engine.wait(run_ids, timeout=timeout)
    except KeyboardInterrupt:
        note("stopped waiting; the runs continue")
        raise
    if len(runs) < len(run_ids):
        gone = ", ".join(run_id[-6:] for run_id in run_ids if run_id not in {run.run_id for run in runs})
        raise SubdeckError(f"deleted while they were waited for: {gone}", where="wait")
    open_runs = [run for run in runs if not run.has_ended]
    if as_json:
        document({"timedOut": bool(open_runs), "runs": [run_document(engine, run) for run in runs]})
    else:
        say("\n".join(_rows(runs)))
    if open_runs:
        unfinished = "1 run has" if len(runs) == 1 else f"{len(open_runs)} of {len(runs)} runs have"
        note(f"subdeck: {unfinished} not ended after {timeout:g} s")
        return TIMED_OUT
    return worst(runs)


def _rows(runs: Sequence[RunSnapshot]) -> list[str]:
    now = datetime.now(UTC)
    cells = [
        (
            describe.state(run),
            run.meta.short_id,
            run.meta.title,
            run.meta.description or run.meta.task,
            describe.doing(run, DOING),
            describe.elapsed(run, now),
            describe.tokens(run.usage.tokens),
        )
        for run in runs
    ]
    return table(COLUMNS, cells, terminal_width())
