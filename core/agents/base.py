"""What an agent, a child program, has to offer the engine and the wrapper."""

from __future__ import annotations

import sys
from enum import StrEnum

from msgspec import Struct


class AgentKind(StrEnum):
    """Which protocol a child program speaks."""

    PI = "pi"
    OFFLINE = "offline"
    """The reader that comes with subdeck and uses no model."""

    @classmethod
    def of(cls, agent: str) -> AgentKind:
        """Return the kind of an agent by its name; one that the settings name speaks as pi does."""
        return cls.OFFLINE if agent == cls.OFFLINE else cls.PI


class Command(Struct, frozen=True):
    """How a child is started; its stdin is always the prompt file."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """Added to what the wrapper itself got."""
    unset: tuple[str, ...] = ()
    """Variables the child must not see even if the wrapper has them; removed before `env` is added."""


MODEL = "offline/reader"
"""What it answers as, whatever model was asked for: no model is behind it."""

TOOL_NAMES = ("read", "grep", "find", "ls")
"""The tools it has, by pi's names."""


def offline_command() -> tuple[str, ...]:
    """Return the program and its leading arguments; `-P -E` keep the run's directory and environment out of it."""
    return (sys.executable, "-P", "-E", "-m", "subdeck.core.offline_agent")
