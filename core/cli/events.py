"""`subdeck events`: follow runs on the four channels, as other programs do."""

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
@click.option("--run", "word", metavar="RUN", help="Only this run; ends with it.")
@click.option(
    "--entries",
    type=click.Choice(["last", "all"]),
    default="last",
    help="What progress carries: the last 20 entries (default), or all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each emission as a line of JSON: channel and payload.")
def command(word: str | None, entries: str, as_json: bool) -> int:
    """Follow runs until ctrl-C: one "started" for each that goes on, then all that happens to any.

    The channels are subagents:created, subagents:started (progress too, at most four a second for each run),
    subagents:completed, subagents:failed.
    """
    engine = Engine.open()
    run_id = engine.find((word,))[0] if word else None
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
