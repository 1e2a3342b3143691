"""`subdeck take-over`: go on with a run by hand, in this terminal, and say how it goes on after that."""

from __future__ import annotations

import sys
import time

import click

from ..engine import Engine
from ..errors import UsageError
from ..run.model import Verdict
from ..run.requests import FINISH_HERE
from ..run.snapshot import RunSnapshot
from ..takeover import take_over as go_on_by_hand
from ._options import json_option, run_argument
from .output import document, is_terminal, note, say

HAND_BACK_S = 15.0
"""How long a run may take to read what was said, until it asks how it goes on."""
LOOK_S = 0.05


@click.command("take-over")
@run_argument
@json_option
def take_over(ref: str, as_json: bool) -> None:
    """Continue a run interactively in the agent's own UI, in this terminal. Works for pi, Claude Code and Codex.

    The run's current turn ends first. Exit the agent's UI to return the run: the conversation is added to its
    transcript, and you choose whether the run finishes or continues. Timers pause in between. A finished run continues
    as a new run. With --json, only print the command that does this.
    """
    engine = Engine.open()
    (run_id,) = engine.find((ref,))
    if not as_json and not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError(
            "take-over needs a terminal",
            where="take-over",
            hint="subdeck send works without one",
            code="usage.terminal_required",
        )
    argv = engine.take_over(run_id)
    if as_json:
        document({"argv": argv})
        return
    run_dir, by = argv[-2:]
    go_on_by_hand(run_dir, by)
    _choose(engine, run_dir.rpartition("/")[2])


def _choose(engine: Engine, run_id: str) -> None:
    """Ask how a run goes on that was handed back, unless somebody has said so already."""
    run = _handed_back(engine, run_id)
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


def _handed_back(engine: Engine, run_id: str) -> RunSnapshot | None:
    deadline = time.monotonic() + HAND_BACK_S
    run = None
    while time.monotonic() < deadline:
        run = next(iter(engine.snapshots((run_id,))), None)
        if run is None or run.has_ended or run.is_waiting:
            return run
        time.sleep(LOOK_S)
    return run
