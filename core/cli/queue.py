"""`subdeck queue`: list the queued runs in their order, move one, pause and resume the queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from ..engine import Engine
from ..errors import UsageError
from ..run.describe import QUEUE_HELD, doing
from ..run.snapshot import Queued, RunSnapshot
from ..text.column import Column
from ._command import Document, command
from ._table import table
from .output import Output, Piece, terminal_width

COLUMNS = (Column(6), Column(20, least=8), Column(80, least=10), Column(60, least=24))


class QueuedRun(Document, frozen=True):
    """A queued run."""

    run_id: str
    preset: str
    """Empty for a one-off run."""
    task: str
    ahead: int
    """Runs before it in the queue."""
    held: bool
    """Whether the queue is paused."""


class Queue(Document, frozen=True):
    """The queue of the project."""

    held: bool
    """Whether the queue is paused."""
    runs: tuple[QueuedRun, ...]
    """In the order in which they start."""


@command(
    "queue",
    "subdeck queue",
    "subdeck queue 4ae0bd --up",
    "subdeck queue --hold # start no run until --release",
)
@click.argument("ref", metavar="[RUN]", required=False)
@click.option("--up", "step", flag_value=-1, type=int, help="Move RUN up by one place.")
@click.option("--down", "step", flag_value=1, type=int, help="Move RUN down by one place.")
@click.option(
    "--hold/--release", "held", default=None, help="Pause the queue, so that no new run starts, or resume it."
)
def queue(ref: str | None, step: int | None, held: bool | None) -> Output[Queue]:
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
    return Output(Queue(is_held, tuple(map(_queued, waiting))), _text(waiting, is_held=is_held))


def _text(waiting: Sequence[RunSnapshot], *, is_held: bool) -> Iterator[Piece]:
    rows = [(run.meta.short_id, run.meta.title, run.meta.description or run.meta.task, doing(run)) for run in waiting]
    yield table(COLUMNS, rows, terminal_width()) if rows else "The queue is empty."
    if is_held:
        yield f"{QUEUE_HELD}."


def _queued(run: RunSnapshot) -> QueuedRun:
    state = _state(run)
    return QueuedRun(run.run_id, run.meta.preset, run.meta.task, state.ahead, state.held)


def _state(run: RunSnapshot) -> Queued:
    return run.state if isinstance(run.state, Queued) else Queued()
