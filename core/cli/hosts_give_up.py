"""`subdeck hosts give-up`: the end of runs whose host does not come back."""

from __future__ import annotations

import click

from ..engine import Engine
from ._options import json_option, runs_argument
from .output import document, say


@click.command("give-up")
@runs_argument
@json_option
def give_up(refs: tuple[str, ...], as_json: bool) -> None:
    """Abandon runs whose host is unreachable and will not come back: they count as lost.

    Nothing is done on the host. If it comes back, the run is stopped there, and its outcome is stored beside the
    result.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    for run_id in run_ids:
        engine.give_up(run_id)
        if not as_json:
            say(f"{run_id[-6:]} is abandoned")
    if as_json:
        document({"givenUp": run_ids})
