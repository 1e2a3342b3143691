"""`subdeck wait`: block until runs have ended."""

from __future__ import annotations

import click

from ..engine import Engine
from ..errors import SubdeckError
from .options import json_option, runs_argument
from .outcomes import run_document, worst
from .output import document, note, say
from .status import rows

TIMED_OUT = 124
"""The exit code of `timeout(1)`."""


@click.command("wait")
@runs_argument
@click.option(
    "--timeout", metavar="S", type=click.FloatRange(min=0), help="Give up after S seconds; the runs continue."
)
@json_option
def command(refs: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
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
        say("\n".join(rows(runs)))
    if open_runs:
        unfinished = "1 run has" if len(runs) == 1 else f"{len(open_runs)} of {len(runs)} runs have"
        note(f"subdeck: {unfinished} not ended after {timeout:g} s")
        return TIMED_OUT
    return worst(runs)
