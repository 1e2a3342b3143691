"""The program `subdeck`: the command line of the engine, and the app where no command is named."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

GC_THRESHOLD = 100_000
"""New objects between two garbage collections. With Python's own threshold, a tenth of a quick command and of the app's
start would be collections that find nothing; once the app is loaded it goes back to that, see `terminal.gc`."""


def program() -> NoReturn:
    """Run `main` and end the process at once: everything is written by then, and to free each object would take as long
    as a tenth of a quick command."""
    os._exit(main())


def main() -> int:
    """Run one command, or the app where none is named; return the exit code."""
    gc.set_threshold(GC_THRESHOLD)
    problem: BaseException | None = None
    if not sys.argv[1:]:  # the first paint does not wait for what reads commands
        try:
            return _open_app()
        except (Exception, KeyboardInterrupt) as error:
            problem = error
    if sys.argv[1:2] not in (["run"], ["bg"]) or "--help" in sys.argv:
        return _command_line(problem)
    from ..core.runners import standby

    standby.start()  # before what reads commands is loaded
    try:
        return _command_line(problem)
    finally:
        standby.dismiss()


def _command_line(problem: BaseException | None) -> int:
    from ..core.cli.main import main as command_line

    return command_line(lambda wanted: _open_app(wanted.run, readonly=wanted.readonly, problem=problem))


def _open_app(run: str | None = None, *, readonly: bool = False, problem: BaseException | None = None) -> int:
    """Open the app, or raise what has kept it from opening, so that the command line tells it."""
    if problem is not None:
        raise problem
    from ..core.errors import UsageError

    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise UsageError("the app needs a terminal", where="subdeck", hint="subdeck --help lists the commands")
    from ..core.engine import Engine
    from ..core.run.model import LauncherKind

    engine = Engine.open(kind=LauncherKind.APP, readonly=readonly)
    run_id = None if run is None else engine.find((run,))[0]  # before what only the app needs is loaded
    from .deck.opening import Opening
    from .run_app import open_app

    if farewell := open_app(engine, Opening(run_id, readonly)):
        from ..core.cli.output import drop_unwritten

        try:
            print(farewell)
        finally:
            drop_unwritten()
    return 0


if __name__ == "__main__":
    program()
