"""`subdeck attach`: show the tmux pane of a run in this terminal."""

from __future__ import annotations

import os
import sys

import click

from ..engine import Engine
from ..errors import RunnerUnavailable, UsageError
from .options import json_option, run_argument
from .output import document, is_terminal


@click.command("attach")
@run_argument
@json_option
def command(ref: str, as_json: bool) -> int:
    """Show the tmux pane of a run in this terminal. tmux's detach key leaves it again; the run is not affected.

    With --json, only print the command that does this and the keys that leave the pane.
    """
    engine = Engine.open()
    attach_command = engine.attach_command(engine.find((ref,))[0])
    if as_json:
        document({"argv": attach_command.argv, "leave": attach_command.leave})
        return 0
    argv = attach_command.argv
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError("attach needs a terminal", where="attach", hint="subdeck logs -f does not")
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - argv of tmux, without a shell
    except OSError as error:
        raise RunnerUnavailable(f"{argv[0]} could not be started: {error.strerror}", where="attach") from error
