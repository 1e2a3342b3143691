"""`subdeck open`: show a run in this terminal, or continue it in the agent's own program."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

import click
from msgspec import UNSET, UnsetType

from ..engine import Engine
from ..errors import RunnerUnavailable, SubdeckError, UsageError
from ..interactive import take_over as continue_interactively
from ..run.model import Verdict
from ..run.requests import FINISH_HERE
from ..run.snapshot import Running, RunSnapshot
from ._command import Document, command, is_json
from ._options import run_argument, snapshot_of
from .output import Output, is_terminal, note, say

HAND_BACK_S = 15.0
"""Seconds within which a run reads the conversation and asks how to continue."""
LOOK_S = 0.05


class OpenCommand(Document, frozen=True, omit_defaults=True):
    """The command that opens the run."""

    argv: tuple[str, ...]
    leave: tuple[str, ...] | UnsetType = UNSET
    """For a tmux pane: the keys that detach, in order."""


@command(
    "open",
    "subdeck open 4ae0bd",
    "subdeck open --agent 4ae0bd # continue it in the agent's own UI",
    "subdeck open 4ae0bd --json # only the command",
)
@run_argument
@click.option("--agent", "in_agent", is_flag=True, help="Continue the run interactively in the agent's own UI.")
@click.option("--pane", is_flag=True, hidden=True)
@click.option("--yes", is_flag=True, help="With --agent: do not ask if the agent is working.")
@click.pass_obj
def open(  # noqa: A001 - the name of the command
    open_app: Callable[[Sequence[str], bool, bool], int], ref: str, in_agent: bool, pane: bool, yes: bool
) -> Output[OpenCommand] | int:
    """Show a run in this terminal: its tmux pane if there is one, otherwise its transcript in the app.

    Leave the pane with tmux's detach key; the run continues.

    With --agent, continue the run interactively in the agent's own UI. Works for pi, Claude Code and Codex. The run's
    current turn ends first, after confirmation. Exit the agent's UI to return the run: the conversation is added to its
    transcript, and you choose whether the run finishes or continues. Timers pause in between. A finished run continues
    as a new run.

    With --json, only print the command that opens the run.
    """
    engine = Engine.open()
    (run_id,) = engine.find((ref,))
    if in_agent:
        return _open_agent(engine, run_id, yes=yes)
    try:
        attach = engine.attach_command(run_id)
    except SubdeckError:
        if pane:
            raise
        if is_json():
            from ..pi_parent.installer import own_command

            return Output(OpenCommand((*own_command(), "--run", run_id)))
        _check_terminal("subdeck logs -f works without one")
        return open_app((run_id,), False, False)
    if is_json():
        return Output(OpenCommand(attach.argv, attach.leave))
    _check_terminal("subdeck logs -f works without one")
    program = attach.argv[0]
    try:
        os.execvp(program, attach.argv)  # noqa: S606 - argv of tmux, without a shell
    except OSError as error:
        raise RunnerUnavailable(f"{program} could not be started: {error.strerror}", where="open") from error


def _check_terminal(hint: str) -> None:
    """Raise UsageError without a terminal."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError("open needs a terminal", where="open", hint=hint, code="usage.terminal_required")


def _open_agent(engine: Engine, run_id: str, *, yes: bool) -> Output[OpenCommand] | int:
    """Continue a run in the agent's own program, after confirmation if the agent is working."""
    if is_json():
        return Output(OpenCommand(tuple(engine.take_over(run_id))))
    _check_terminal("subdeck send works without one")
    run = snapshot_of(engine, run_id)
    if isinstance(run.state, Running) and not (yes or run.is_waiting or run.is_interrupted or run.is_taken_over):
        say(f"The agent of {run.meta.short_id} is working. Its UI opens here when its current turn ends.")
        if not click.confirm("Open it?", default=True):
            note("nothing was opened")
            return 0
    run_dir, by = engine.take_over(run_id)[-2:]
    continue_interactively(run_dir, by)
    _choose(engine, run_dir.rpartition("/")[2])
    return 0


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
        text = input("> ").strip()
    except (EOFError, KeyboardInterrupt):
        note(f"it needs input: subdeck reply {run.meta.short_id} 1|2, or subdeck send {run.meta.short_id} TEXT")
        return
    if text:
        engine.send(run_id, text)
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
