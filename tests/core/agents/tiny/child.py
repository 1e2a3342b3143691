"""The tiny agent as the wrapper sees it: its stdin is the task, and each line of its output begins with a word."""

from __future__ import annotations

from collections.abc import Sequence

from subdeck.core.agents._stream import AgentStream
from subdeck.core.agents.child import Child, Command, Start
from subdeck.core.run.environment import child_environment
from subdeck.core.run.events import AssistantText, Event
from subdeck.core.run.model import RunMeta


class TinyStream(AgentStream):
    def take(self, line: bytes) -> list[Event]:
        match line.decode("utf-8", "replace").split(" ", 1):
            case ["say", text]:
                self.note(final_text=text)
                return [AssistantText(text=text)]
            case ["done"]:
                self.note(finished=True)
                self.finished_after = 0
                return []
            case _:
                return self.not_understood(line)


class TinyChild:
    def knows(self, lines: Sequence[bytes]) -> bool:
        return lines[0].startswith(b"say ")

    def command(self, start: Start) -> Command:
        return Command(start.meta.agent_command, child_environment(start.meta))

    def stream(self, start: Start | None = None) -> TinyStream:
        return TinyStream()

    def explain(self, meta: RunMeta, stderr: str) -> str:
        return ""


CHILD: Child = TinyChild()
