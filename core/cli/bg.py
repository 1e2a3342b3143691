"""`subdeck bg`: start a run in the background."""

from __future__ import annotations

import sys
from typing import Unpack

import click

from ..engine import Engine
from ..errors import SubdeckError
from ..project.registry import count
from ..run import describe
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from .launch_options import EPILOG, LaunchOptions, launch_options, read_request
from .options import json_option
from .outcomes import DELETED_CODE, worst
from .output import document, is_terminal, note, say, show_error


@click.command("bg", epilog=EPILOG)
@launch_options
@json_option
def command(args: tuple[str, ...], as_json: bool, **options: Unpack[LaunchOptions]) -> int:
    """Start a run in the background and print its id. The run outlives this command and the terminal.

    The exit code is 0 once the run has started, or that of `run` if it has already ended by then.
    """
    engine = Engine.open()
    launched = engine.launch((read_request(engine, args, options),), background=True)
    if not launched:
        deleted = SubdeckError("the run was deleted as soon as it had been started", where=engine.project.runs)
        show_error(deleted, as_json=as_json)
        return DELETED_CODE
    (run,) = launched
    try:
        _print(engine, run, as_json=as_json)
    except (SubdeckError, OSError) as error:
        what = f"the run {run.run_id} was started, but this could not be printed: {error}"
        hint = f"subdeck status {run.meta.short_id} shows it"
        show_error(SubdeckError(what, where="stdout", hint=hint), as_json=as_json)
    return worst((run,))


def _print(engine: Engine, run: RunSnapshot, *, as_json: bool) -> None:
    if as_json:
        counts = count(other for other in engine.snapshots() if other.meta.background)
        paths = engine.artifacts(run.run_id)
        document({"runId": run.run_id, "status": run.status, "counts": counts, "artifacts": paths})
    else:
        say(run.run_id)
        if run.has_ended:
            note(one_line(f"{describe.state(run)}: {describe.doing(run)}"))
        elif is_terminal(sys.stdout):
            note(f"subdeck logs -f {run.meta.short_id} follows it, subdeck wait {run.meta.short_id} waits for it")
