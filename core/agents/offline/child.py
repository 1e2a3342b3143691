"""The running side of the offline agent, with pi's flags and output."""

from __future__ import annotations

from collections.abc import Sequence

from ...run.model import RunMeta
from ..child import Child, Command, Start
from ..pi.program import COPILOT_INITIATOR, environment_of, flags_of
from ..pi.stream import PiStream
from ._program import offline_command


class OfflineChild:
    def knows(self, lines: Sequence[bytes]) -> bool:
        return False  # its output is recognized as pi's

    def command(self, start: Start) -> Command:
        meta = start.meta
        argv = (*(meta.agent_command or offline_command()), *flags_of(meta, start.run_dir))
        return Command(argv, environment_of(meta), unset=(COPILOT_INITIATOR,), pipe=bool(meta.talk))

    def stream(self, start: Start | None = None) -> PiStream:
        if start is None or not start.meta.talk:
            return PiStream()
        from ..pi.conversation import PiConversation

        return PiConversation(start)

    def explain(self, meta: RunMeta, stderr: str) -> str:
        return ""


CHILD: Child = OfflineChild()
