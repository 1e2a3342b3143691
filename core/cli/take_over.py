"""`subdeck take-over`: continue a run interactively in this terminal, then ask how it continues."""

from __future__ import annotations

import sys
import time

from ..engine import Engine
from ..errors import UsageError
from ..interactive import take_over as continue_interactively
from ..run.model import Verdict
from ..run.requests import FINISH_HERE
from ..run.snapshot import RunSnapshot
from ._command import Document, command, is_json
from ._options import run_argument
from .output import Output, is_terminal, note, say

HAND_BACK_S = 15.0
"""Seconds within which a run reads the conversation and asks how to continue."""
LOOK_S = 0.05


class TakeOver(Document, frozen=True):
    argv: tuple[str, ...]
    """The command that continues the run interactively."""


@command(
    "take-over",
    "subdeck take-over 4ae0bd",
    "subdeck take-over 4ae0bd --json # only the command",
)
@run_argument
def take_over(ref: str) -> Output[TakeOver] | None:
    """Continue a run interactively in the agent's own UI, in this terminal. Works for pi, Claude Code and Codex.

    The run's current turn ends first. Exit the agent's UI to return the run: the conversation is added to its
    transcript, and you choose whether the run finishes or continues. Timers pause in between. A finished run continues
    as a new run. With --json, only print the command that does this.
    """
    engine = Engine.open()
    (run_id,) = engine.find((ref,))
    if not is_json() and not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError(
            "take-over needs a terminal",
            where="take-over",
            hint="subdeck send works without one",
            code="usage.terminal_required",
        )
    argv = engine.take_over(run_id)
    if is_json():
        return Output(TakeOver(tuple(argv)))
    run_dir, by = argv[-2:]
    continue_interactively(run_dir, by)
    _choose(engine, run_dir.rpartition("/")[2])
    return None


def _choose(engine: Engine, run_id: str) -> None:
    """Ask how a returned run continues, unless that is already decided."""
    run = _returned(engine, run_id)
    if run is None:
        return
    if run.has_ended or not run.is_waiting:
        say(f"{run.meta.short_id} {'has finished' if run.has_ended else 'was returned'}")
        return
    say(f"{run.meta.short_id} was returned. Press Enter to finish it here, or type a message to continue.")
    try:
        said = input("> ").strip()
    except (EOFError, KeyboardInterrupt):
        note(f"it needs input: subdeck reply {run.meta.short_id} 1|2, or subdeck send {run.meta.short_id} TEXT")
        return
    if said:
        engine.send(run_id, said)
        say(f"{run.meta.short_id} continues")
    else:
        engine.reply(run_id, "", Verdict.REPLY, FINISH_HERE)
        say(f"{run.meta.short_id} is finished")


def _returned(engine: Engine, run_id: str) -> RunSnapshot | None:
    deadline = time.monotonic() + HAND_BACK_S
    run = None
    while time.monotonic() < deadline:
        run = next(iter(engine.snapshots((run_id,))), None)
        if run is None or run.has_ended or run.is_waiting:
            return run
        time.sleep(LOOK_S)
    return run
