"""`subdeck events`: follow runs on the four channels, for other programs."""

from __future__ import annotations

import click

from ..delegation.channels import Emission, emissions
from ..engine import Engine
from ..run.model import RunMeta
from ..text.plain import one_line
from .cancel import Canceller
from .json_lines import write_line
from .output import say


@click.command("events")
@click.option("--run", "ref", metavar="RUN", help="Follow only this run, and end with it.")
@click.option(
    "--entries",
    type=click.Choice(["last", "all"]),
    default="last",
    help="Which entries a progress report carries: the last 20 (default), or all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON: channel and payload.")
def command(ref: str | None, entries: str, as_json: bool) -> int:
    """Follow runs until ctrl-C: first a "started" for each active run, then everything that happens to any run.

    The channels are subagents:created, subagents:started (also for progress, at most four times a second for each
    run), subagents:completed and subagents:failed.
    """
    engine = Engine.open()
    run_id = engine.find((ref,))[0] if ref else None
    with Canceller() as canceller:
        if run_id and (run := engine.snapshots((run_id,))) and run[0].has_ended:
            return 0

        def is_wanted(meta: RunMeta) -> bool:
            return run_id is None or meta.run_id == run_id

        for emission in emissions(engine, canceller, wanted=is_wanted, whole=entries == "all"):
            try:
                write_line(emission) if as_json else say(_line(emission))
            except BrokenPipeError:
                return 0  # who followed has gone
            if run_id and emission.is_end:
                return 0
    return 0


def _line(emission: Emission) -> str:
    details = emission.payload["details"]
    said = details.get("activity") or details.get("error") or details["description"]
    name = emission.channel.removeprefix("subagents:")
    return one_line(f"{name} {details['agentId'][-6:]} {details['subagentType']} {details['status']} {said}", 400)
