"""The kinds of agents: which program is started, and how its stream is read."""

from __future__ import annotations

from collections.abc import Callable

from .base import AgentKind, AgentProgram
from .offline import OfflineProgram
from .pi.program import PiProgram

_PROGRAMS: dict[AgentKind, Callable[[], AgentProgram]] = {AgentKind.PI: PiProgram, AgentKind.OFFLINE: OfflineProgram}


def program_of(agent: str) -> AgentProgram:
    """Return the program of an agent by its name."""
    return _PROGRAMS[AgentKind.of(agent)]()
