"""The bridge as a program, and what it is told."""

from __future__ import annotations

import sys


def bridge_command() -> tuple[str, ...]:
    """Return the program and its leading arguments; `-P -E` keep the run's directory and environment out of it."""
    return (sys.executable, "-P", "-E", "-m", "subdeck.core.acp_bridge")
