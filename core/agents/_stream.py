"""What the streams of most kinds share: the message being written, the calls that run, and lines that are no events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ..paths import is_session_id
from ..run.events import AssistantText, Event, Notice, UsageReported
from ..run.fold import add_usage
from ..run.model import NoticeLevel, Verdict
from ..run.outcome import Denials, StreamFacts
from ..text.plain import one_line
from ._figures import Figures, bounded, named
from .sentence import Sentence
from .updates import Updates

_MAX_TOOLS = 1000
"""Tool calls whose start is remembered."""


class OneWay:
    """Of a stream that does not talk: nobody asks for anything here but `talks`."""

    talks = False

    @property
    def is_waiting(self) -> bool:
        return False

    def tell(self, message_id: str, text: str) -> None: ...

    def interrupt(self, *, stays: bool) -> None: ...

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None: ...

    def denied(self, what: str) -> None: ...

    def close(self) -> None: ...


class AgentStream(OneWay):
    """The stream of one child, one prompt long; what a kind does not say by itself is as here."""

    updates = Updates()

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._facts = StreamFacts()
        self.writing = Sentence()
        self.finished_after: float | None = None
        self.is_stdin_done = True
        self.turn_ended = False
        """Whether the turn ended and no other began: what the agent writes now is no part of an answer."""
        self.has_left = False
        """Whether the agent said its last word, and was told to go: nothing that it writes now counts."""
        self.figures = Figures()
        self._tools: dict[str, float] = {}
        """When each call began."""
        self._replies = bytearray()
        self._denials = Denials()

    @property
    def facts(self) -> StreamFacts:
        return self._facts

    @property
    def sentence(self) -> str:
        """The end of what the model is writing, at most 2 KB."""
        return self.writing.tail

    @property
    def running_tools(self) -> int:
        return len(self._tools)

    def feed(self, line: bytes) -> list[Event]:
        """Return the events of a line. Of updates, which a later line repeats, a head is enough."""
        if self.has_left:
            return []
        if line.startswith(self.updates.prefixes):
            if not self.turn_ended:
                self.writing.add(self.updates.text(line))
            return []
        return self.seen(self.take(line))

    def denied(self, what: str, *, is_told: bool = False) -> None:
        """Take it that a request was denied; with `is_told` the agent has said already that its call failed."""
        self._denials.denied(what, is_told=is_told)
        self.note(denied=self._denials.words)

    def seen(self, events: list[Event]) -> list[Event]:
        """Take what a line told: a model that is at work after a denial was not ended by it."""
        for event in events:
            self._denials.saw(event)
        if self._facts.denied != self._denials.words:
            self.note(denied=self._denials.words)
        return list(map(bounded, events))

    def used(self, event: UsageReported) -> list[Event]:
        """Report what was used, as `figures` read it."""
        event, warnings = self.figures.checked(event)
        self.note(usage=add_usage(self._facts.usage, event))
        return [event, *warnings]

    def take(self, line: bytes) -> list[Event]:
        """Return the events of a line that is no update."""
        raise NotImplementedError

    def end(self) -> list[Event]:
        """Take the end of the output; return the event of what was being written then."""
        return self.broken_off()

    def say(self, message: bytes) -> None:
        """Have something written to the child's stdin."""
        self._replies += message

    def replies(self) -> bytes:
        if not self._replies:
            return b""
        said = bytes(self._replies)
        self._replies.clear()
        return said

    def note(self, **changes: Any) -> None:
        """Take facts; a session id in a form that no agent's ids have is not believed, and names have an end."""
        if (session_id := changes.get("session_id")) and not is_session_id(session_id):
            changes["session_id"] = self._facts.session_id
        for name in changes.keys() & {"model", "stop_reason"}:
            changes[name] = changes[name] and named(changes[name])
        self._facts = replace(self._facts, **changes)

    def broken_off(self) -> list[Event]:
        """Keep the text of a message that was begun and never ended."""
        text = self.writing.whole()
        self.writing.clear()
        if not text.strip():
            return []
        self.note(final_text=text, partial=True)
        return [AssistantText(text=text, partial=True)]

    def not_understood(self, line: bytes) -> list[Event]:
        """Count a line that is no event, and tell of the first."""
        if not line.strip():
            return []
        self.note(unreadable=self.facts.unreadable + 1)
        if self.facts.unreadable > 1:
            return []
        beginning = one_line(line[:400].decode("utf-8", "replace"), 80)
        return [Notice(level=NoticeLevel.WARNING, text=f"the agent wrote a line that is not an event: {beginning}")]

    def tool_started(self, call_id: str) -> None:
        if len(self._tools) >= _MAX_TOOLS:
            del self._tools[next(iter(self._tools))]
        self._tools[call_id] = self._clock()
        self.note(usage=replace(self._facts.usage, tool_uses=self._facts.usage.tool_uses + 1))

    def tool_ended(self, call_id: str) -> int | None:
        """Return how many milliseconds the call took; None where its start was not seen."""
        started = self._tools.pop(call_id, None)
        return None if started is None else round((self._clock() - started) * 1000)
