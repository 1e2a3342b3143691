"""The running side of Claude Code."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...run.environment import own_variables
from ...run.model import RunMeta
from .._json_lines import decode, string
from ..child import Child, Command, Start
from ._stream import ClaudeStream
from .program import child_command

_TYPES = frozenset({"command_lifecycle", "system", "stream_event", "assistant", "user", "result"})


class ClaudeChild:
    def knows(self, lines: Sequence[bytes]) -> bool:
        """Recognized by a `session_id` member, which no other agent writes."""
        return any(
            (fields := decode(line)) is not None and string(fields.get("type")) in _TYPES and "session_id" in fields
            for line in lines
        )

    def command(self, start: Start) -> Command:
        return child_command(start)

    def stream(self, start: Start | None = None) -> ClaudeStream:
        environment = None if start is None else {**os.environ, **own_variables(os.environ)}
        if start is not None and not start.meta.talk:
            return ClaudeStream(environment)
        from ._conversation import ClaudeConversation  # not needed for non-interactive runs

        return ClaudeConversation(start, environment)

    def explain(self, meta: RunMeta, stderr: str) -> str:
        return ""


CHILD: Child = ClaudeChild()
