"""Start the built-in offline agent as a child: it takes pi's flags and speaks pi's JSON mode."""

from __future__ import annotations

import sys

from ..run.model import RunMeta
from .base import Command
from .pi.program import COPILOT_INITIATOR, pi_flags
from .pi.stream import PiStream

MODEL = "offline/reader"
"""What it answers as, whatever model was asked for: no model is behind it."""

TOOL_NAMES = ("read", "grep", "find", "ls")
"""The tools it has, by pi's names."""


def offline_command() -> tuple[str, ...]:
    """Return the program and its leading arguments; `-P -E` keep the run's directory and environment out of it."""
    return (sys.executable, "-P", "-E", "-m", "subdeck.core.offline_agent")


class OfflineProgram:
    """The offline agent; it needs no model, and any literal one is accepted."""

    name = "offline"
    model = MODEL
    """What a run without a model is resolved to."""
    tools = TOOL_NAMES

    def command(self, meta: RunMeta, run_dir: str, attempt: int) -> Command:
        """Return argv and environment of one attempt; raises LaunchError when a file it is told about is missing."""
        return Command(
            argv=(*(meta.agent_command or offline_command()), *pi_flags(meta, run_dir)),
            env={"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": meta.run_id},
            unset=(COPILOT_INITIATOR,),
        )

    def stream(self) -> PiStream:
        return PiStream()
