"""The bridge as a program."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

_PROGRAM = "from subdeck.core.acp_bridge.__main__ import main; raise SystemExit(main())"
"""What `-m subdeck.core.acp_bridge` does, without what finds a module by its name: 4 ms."""


def bridge_command(wishes: Mapping[str, str], command: Sequence[str]) -> tuple[str, ...]:
    """Return the bridge with the command of an agent; `wishes` are those of `core/acp_bridge/wishes.py`.

    `-P -E` keep the run's directory and environment out of it.
    """
    return (sys.executable, "-P", "-E", "-c", _PROGRAM, *map("=".join, wishes.items()), "--", *command)
