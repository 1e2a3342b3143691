"""Read what `codex exec --json` writes: whole messages only, and one sum of tokens at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from ...run.events import Event, Retry
from ..json_lines import decode, mapping, string
from .faults import fault_words, reconnecting
from .items import as_in_app_server
from .stream import CodexStream
from .tokens import Tokens

_TYPE = re.compile(rb'\{"type":"([a-z._]{1,40})"')


class ExecStream(CodexStream):
    """The stream of one `codex exec`, one prompt long."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        earlier: Tokens | None = None,
        prompt: bytes = b"",
        find: Callable[[str | None], str | None] = lambda thread: None,
    ) -> None:
        """`earlier` is what the conversation had used before this run; `prompt` is for a child that reads a pipe;
        `find` returns where a thread is kept.
        """
        super().__init__(clock)
        self._earlier = earlier or Tokens()
        self._find = find
        self.say(prompt)
        self.note(silent=True)
        self._readers: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "thread.started": self._thread_started,
            "item.started": lambda fields: self.item_started(as_in_app_server(mapping(fields.get("item")))),
            "item.completed": lambda fields: self.item_completed(as_in_app_server(mapping(fields.get("item")))),
            "turn.completed": self._turn_completed,
            "turn.failed": self._turn_failed,
            "error": self._error,
        }

    def take(self, line: bytes) -> list[Event]:
        found = _TYPE.match(line)
        if found and found[1].decode("ascii", "replace") not in self._readers:
            return []
        fields = decode(line)
        if fields is None:
            return self.not_understood(line)
        if self.turn_ended:
            return []
        self.note(silent=False)
        reader = self._readers.get(string(fields.get("type")))
        return reader(fields) if reader else []

    def _thread_started(self, fields: dict[str, Any]) -> list[Event]:
        self.note(session_id=string(fields.get("thread_id")) or self.facts.session_id)
        return []

    def _turn_completed(self, fields: dict[str, Any]) -> list[Event]:
        self._called.clear()
        total = Tokens.of(mapping(fields.get("usage")), self.figures.tokens)
        events = self.paid(total.since(self._earlier) or total)
        self.finished(error_message=None, conversation=self._find(self.facts.session_id))
        return events

    def _turn_failed(self, fields: dict[str, Any]) -> list[Event]:
        return [self.failed(mapping(fields.get("error")), conversation=self._find(self.facts.session_id))]

    def _error(self, fields: dict[str, Any]) -> list[Event]:
        """Take a retry; other words are repeated by `turn.failed`, and are the last ones where it does not come."""
        found = reconnecting(string(fields.get("message")))
        if found is None:
            self.note(error_message=fault_words(fields))
            return []
        self.broke_off()
        attempt, most, why = found
        return [Retry(attempt=attempt, max_attempts=most, delay_ms=0, reason=why)]
