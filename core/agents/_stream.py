"""Shared by the streams of most kinds: the message being written, running calls, and lines that are not events."""

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
"""Maximum tool calls whose start time is kept."""


class OneWay:
    """Base for non-interactive streams: only `talks` is ever read."""

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
    """The stream of one agent and one prompt, with the defaults of all kinds."""

    updates = Updates()

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._facts = StreamFacts()
        self.writing = Sentence()
        self.finished_after: float | None = None
        self.is_stdin_done = True
        self.turn_ended = False
        """Whether the last turn has ended; later output is not part of an answer."""
        self.has_left = False
        """Whether the agent has finished and was asked to exit; its further output is ignored."""
        self.figures = Figures()
        self._tools: dict[str, float] = {}
        """Start time of each call."""
        self._replies = bytearray()
        self._denials = Denials()

    @property
    def facts(self) -> StreamFacts:
        return self._facts

    @property
    def sentence(self) -> str:
        """The end of the text the model is writing, at most 2 KB."""
        return self.writing.tail

    @property
    def running_tools(self) -> int:
        return len(self._tools)

    def feed(self, line: bytes) -> list[Event]:
        """Return the events of a line. The head of an update is enough, because a later line repeats it."""
        if self.has_left:
            return []
        if line.startswith(self.updates.prefixes):
            if not self.turn_ended:
                self.writing.add(self.updates.text(line))
            return []
        return self.seen(self.take(line))

    def denied(self, what: str, *, is_reported: bool = False) -> None:
        """Record a denied request; `is_reported`: the agent has already reported the failed call."""
        self._denials.denied(what, is_reported=is_reported)
        self.note(denied=self._denials.words)

    def seen(self, events: list[Event]) -> list[Event]:
        """Track denials in new events: if the model works after a denial, the denial did not end it."""
        for event in events:
            self._denials.saw(event)
        if self._facts.denied != self._denials.words:
            self.note(denied=self._denials.words)
        return list(map(bounded, events))

    def used(self, event: UsageReported) -> list[Event]:
        """Report usage, with the numbers as `figures` read them."""
        event, warnings = self.figures.checked(event)
        self.note(usage=add_usage(self._facts.usage, event))
        return [event, *warnings]

    def take(self, line: bytes) -> list[Event]:
        """Return the events of a line that is not an update."""
        raise NotImplementedError

    def end(self) -> list[Event]:
        """Handle the end of the output; return the event of the unfinished message."""
        return self.broken_off()

    def say(self, message: bytes) -> None:
        """Queue a message for the agent's stdin."""
        self._replies += message

    def replies(self) -> bytes:
        if not self._replies:
            return b""
        replies = bytes(self._replies)
        self._replies.clear()
        return replies

    def note(self, **changes: Any) -> None:
        """Update the facts; ignore an invalid session id, and shorten names."""
        if (session_id := changes.get("session_id")) and not is_session_id(session_id):
            changes["session_id"] = self._facts.session_id
        for name in changes.keys() & {"model", "stop_reason"}:
            changes[name] = changes[name] and named(changes[name])
        self._facts = replace(self._facts, **changes)

    def broken_off(self) -> list[Event]:
        """Keep the text of a message that never ended."""
        text = self.writing.whole()
        self.writing.clear()
        if not text.strip():
            return []
        self.note(final_text=text, partial=True)
        return [AssistantText(text=text, partial=True)]

    def not_understood(self, line: bytes) -> list[Event]:
        """Count a line that is not an event, and warn about the first."""
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
        """Return the duration of a call in milliseconds; None if its start was not seen."""
        started = self._tools.pop(call_id, None)
        return None if started is None else round((self._clock() - started) * 1000)
