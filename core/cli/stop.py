"""`subdeck stop`: stop runs."""

from __future__ import annotations

import click

from ..engine import Engine
from .options import json_option, runs_argument
from .output import document, say


@click.command("stop")
@runs_argument
@click.option("--kill", is_flag=True, help="Kill the whole process tree at once, with no time to clean up.")
@json_option
def command(refs: tuple[str, ...], kill: bool, as_json: bool) -> int:
    """Ask runs to stop, without waiting for it. Runs that have already ended are left as they are.

    A run first gets TERM; what is left of it when the grace period (setting grace_seconds) is over gets KILL.
    """
    engine = Engine.open()
    run_ids = tuple(dict.fromkeys(engine.find(refs)))
    stopping = engine.stop(run_ids, force=kill)
    ended = tuple(run_id for run_id in run_ids if run_id not in stopping)
    if as_json:
        document({"stopping": stopping, "ended": ended})
        return 0
    for run_id in run_ids:
        say(f"{run_id[-6:]} {'is being stopped' if run_id in stopping else 'had already ended'}")
    return 0
