"""The offline agent's command and model name."""

from __future__ import annotations

import sys

MODEL = "offline/reader"
"""Its model name, regardless of the requested model; it uses none."""

TOOL_NAMES = ("read", "grep", "find", "ls", "edit")
"""Its tools, by pi's names."""


def offline_command() -> tuple[str, ...]:
    """Return its command; `-P -E` keep the run's directory and environment out of it."""
    return (sys.executable, "-P", "-E", "-m", "subdeck.core.offline_agent")
