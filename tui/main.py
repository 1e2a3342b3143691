"""The program `subdeck`: the command line of the engine, and the app where no command is named."""

from __future__ import annotations

import atexit
import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.cli.main import AppOptions

THRESHOLD = 100_000
"""Objects between two looks for garbage; a tenth of a quick command would be looks that find nothing, and of the app's
start too: it looks as usual from when it is loaded, see `collecting`."""


def main() -> int:
    """Answer the exit code."""
    gc.set_threshold(THRESHOLD)
    atexit.register(gc.freeze)  # the last looks for garbage find nothing: the process ends with all it has
    from ..core.cli.main import main as command_line

    return command_line(_open_app)


def _open_app(wanted: AppOptions) -> int:
    from ..core.errors import UsageError

    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise UsageError("the app needs a terminal", where="subdeck", hint="subdeck --help lists the commands")
    from ..core.engine import Engine

    engine = Engine.open(kind="app", readonly=wanted.readonly)
    run_id = None if wanted.run is None else engine.find((wanted.run,))[0]  # before what only the app needs is loaded
    from .opening import Opening
    from .run_app import open_app

    if farewell := open_app(engine, Opening(run_id, wanted.readonly)):
        print(farewell)
    return 0


if __name__ == "__main__":
    sys.exit(main())
