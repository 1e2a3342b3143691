"""The offline agent as the wrapper sees it: it takes pi's flags and writes as pi does."""

from __future__ import annotations

from collections.abc import Sequence

from ...run.model import RunMeta
from ..child import Child, Command, Start, child_environment
from ..pi.program import COPILOT_INITIATOR, flags_of
from ..pi.stream import PiStream
from .program import offline_command


class OfflineChild:
    def knows(self, lines: Sequence[bytes]) -> bool:
        return False  # what it writes is told as pi's

    def command(self, start: Start) -> Command:
        program = start.meta.agent_command or offline_command()
        flags = flags_of(start.meta, start.run_dir)
        return Command((*program, *flags), child_environment(start.meta), unset=(COPILOT_INITIATOR,))

    def stream(self, start: Start | None = None) -> PiStream:
        return PiStream()

    def explain(self, meta: RunMeta, stderr: str) -> str:
        return ""


CHILD: Child = OfflineChild()
