"""The program `subdeck`: the command line of the engine, and the app where no command is named."""

from __future__ import annotations

import atexit
import gc
import sys

USUAL = gc.get_threshold()
THRESHOLD = 100_000
"""Objects between two looks for garbage; a tenth of a quick command would be looks that find nothing."""


def main() -> int:
    """Answer the exit code."""
    gc.set_threshold(THRESHOLD)
    atexit.register(gc.freeze)  # the last looks for garbage find nothing: the process ends with all it has
    from ..core.cli.main import main as command_line

    return command_line(_open_app)


def _open_app() -> int:
    from ..core.errors import UsageError

    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise UsageError("the app needs a terminal", where="subdeck", hint="subdeck --help lists the commands")
    gc.set_threshold(*USUAL)
    from ..core.engine import Engine
    from .run_app import open_app

    if farewell := open_app(Engine.open(kind="app")):
        print(farewell)
    return 0


if __name__ == "__main__":
    sys.exit(main())
