"""The kinds of agents: which program is started, and how its stream is read."""

from __future__ import annotations

from ..run.model import RunMeta
from .base import AgentKind, AgentProgram, Command
from .offline import offline_command
from .pi.program import PiProgram, json_mode_command
from .pi.stream import PiStream


class OfflineProgram:
    """The built-in offline agent: it takes pi's flags and speaks pi's JSON mode."""

    def command(self, meta: RunMeta, run_dir: str, attempt: int) -> Command:
        """Return argv and environment of one attempt; raises LaunchError when a file it is told about is missing."""
        return json_mode_command(meta.agent_command or offline_command(), meta, run_dir)

    def stream(self) -> PiStream:
        return PiStream()


_PROGRAMS: dict[AgentKind, type[AgentProgram]] = {AgentKind.PI: PiProgram, AgentKind.OFFLINE: OfflineProgram}


def program_of(agent: str) -> AgentProgram:
    """Return the program of an agent by its name; one that the settings name speaks as pi does."""
    return _PROGRAMS[AgentKind.of(agent)]()
