"""The running side of pi."""

from __future__ import annotations

from collections.abc import Sequence

from ...run.model import RunMeta
from ..child import Child, Command, Start
from .program import child_command, node_problem

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from .stream import PiStream

_EVENTS = frozenset({"session", "agent_start", "agent_end", "turn_start", "message_start", "message_update"})
"""pi's first lines include one of these."""


class PiChild:
    def knows(self, lines: Sequence[bytes]) -> bool:
        from .stream import kind

        return any((name := kind(line)) is not None and name[0] in _EVENTS for line in lines)

    def command(self, start: Start) -> Command:
        return child_command(start.meta, start.run_dir)

    def stream(self, start: Start | None = None) -> PiStream:
        # takes 2 ms, while pi starts
        if start is None or start.meta.talk:
            from .conversation import PiConversation

            return PiConversation(start)
        from .stream import PiStream

        return PiStream()

    def explain(self, meta: RunMeta, stderr: str) -> str:
        return node_problem(meta.agent_command, stderr)


CHILD: Child = PiChild()
