"""Starts subdeck with the tiny kind in its table: `python -P start.py [subdeck.core.wrapper] ARGUMENT…`.

A wrapper is a separate process, which ignores Python's environment variables. So commands start it with this file.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4]))

from subdeck.core.agent_kinds import KINDS
from subdeck.core.runners import standby

from tests.core.agents.tiny import ROW

WRAPPER = "subdeck.core.wrapper"
"""The argument by which subdeck recognizes a wrapper."""


def main() -> None:
    KINDS[ROW.name] = ROW
    if sys.argv[1] == WRAPPER:
        del sys.argv[1]
        from subdeck.core.wrapper.__main__ import program
    else:
        from subdeck.tui.main import program

        wrapper = (str(Path(__file__)), WRAPPER)
        standby.loading = lambda program="": wrapper
    program()


if __name__ == "__main__":
    main()
