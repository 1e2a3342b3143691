"""`subdeck queue`: which runs wait, in which order, and whether any may start."""

from __future__ import annotations

import click

from ..engine import Engine
from ..errors import UsageError
from ..run.describe import QUEUE_HELD, doing
from ..run.snapshot import Queued, RunSnapshot
from ..text.column import Column
from ._options import json_option
from ._table import table
from .output import document, say, terminal_width

COLUMNS = (Column(6), Column(20, least=8), Column(80, least=10), Column(60, least=24))


@click.command("queue")
@click.argument("ref", metavar="[RUN]", required=False)
@click.option("--up", "step", flag_value=-1, type=int, help="Move RUN up by one place.")
@click.option("--down", "step", flag_value=1, type=int, help="Move RUN down by one place.")
@click.option(
    "--hold/--release", "held", default=None, help="Pause the queue, so that no new run starts, or resume it."
)
@json_option
def queue(ref: str | None, step: int | None, held: bool | None, as_json: bool) -> None:
    """List the queued runs in order, move one of them, or pause and resume the queue.

    With --json, print one document: {"held", "runs": [{"runId", "preset", "task", "ahead", "held"}]}.
    """
    if (ref is None) != (step is None):
        raise UsageError("RUN needs --up or --down", where="queue", hint="subdeck queue RUN --up")
    engine = Engine.open()
    if held is not None:
        engine.hold_queue(held)
    if ref is not None and step is not None:
        engine.move_in_queue(engine.find((ref,))[0], step)
    waiting = [run for run in engine.snapshots(last=0) if run.status == "queued" and not run.foreign]
    waiting.sort(key=lambda run: (_state(run).ahead, run.meta.created_at))
    is_held = engine.is_queue_held()
    if as_json:
        document({"held": is_held, "runs": [_fields(run) for run in waiting]})
        return
    rows = [(run.meta.short_id, run.meta.title, run.meta.description or run.meta.task, doing(run)) for run in waiting]
    say("\n".join(table(COLUMNS, rows, terminal_width())) if rows else "The queue is empty.")
    if is_held:
        say(f"{QUEUE_HELD}.")


def _state(run: RunSnapshot) -> Queued:
    return run.state if isinstance(run.state, Queued) else Queued()


def _fields(run: RunSnapshot) -> dict[str, object]:
    meta, state = run.meta, _state(run)
    return {
        "runId": run.run_id,
        "preset": meta.preset,
        "task": meta.task,
        "ahead": state.ahead,
        "held": state.held,
    }
