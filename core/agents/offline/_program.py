"""The offline agent as a program, and what it answers as."""

from __future__ import annotations

import sys

MODEL = "offline/reader"
"""What it answers as, whatever model was asked for: no model is behind it."""

TOOL_NAMES = ("read", "grep", "find", "ls", "edit")
"""The tools it has, by pi's names."""


def offline_command() -> tuple[str, ...]:
    """Return the program and its leading arguments; `-P -E` keep the run's directory and environment out of it."""
    return (sys.executable, "-P", "-E", "-m", "subdeck.core.offline_agent")
