"""`subdeck stop`: end runs."""

from __future__ import annotations

import click

from ..engine import Engine
from .options import json_option, runs_argument
from .output import document, say


@click.command("stop")
@runs_argument
@click.option("--kill", is_flag=True, help="End its whole process tree at once, without grace.")
@json_option
def command(words: tuple[str, ...], kill: bool, as_json: bool) -> int:
    """Ask runs to end; does not wait for it. What has ended already is left as it is.

    A run gets TERM, and what is left of it after the grace gets KILL.
    """
    engine = Engine.open()
    run_ids = tuple(dict.fromkeys(engine.find(words)))
    told = engine.stop(run_ids, force=kill)
    ended = tuple(run_id for run_id in run_ids if run_id not in told)
    if as_json:
        document({"stopping": told, "ended": ended})
        return 0
    for run_id in run_ids:
        say(f"{run_id[-6:]} {'is being stopped' if run_id in told else 'had ended already'}")
    return 0
