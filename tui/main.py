"""The program `subdeck`: the command line of the engine, and the app where no command is named."""

from __future__ import annotations

import atexit
import gc
import sys

THRESHOLD = 100_000
"""Objects between two looks for garbage; a tenth of a quick command would be looks that find nothing, and of the app's
start too: it looks as usual from when it is loaded, see `collecting`."""


def main() -> int:
    """Return the exit code."""
    gc.set_threshold(THRESHOLD)
    atexit.register(gc.freeze)  # the last looks for garbage find nothing: the process ends with all it has
    problem: BaseException | None = None
    if not sys.argv[1:]:  # the first paint does not wait for what reads commands
        try:
            return _open_app()
        except (Exception, KeyboardInterrupt) as error:
            problem = error
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
    sys.exit(main())
