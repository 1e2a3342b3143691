"""Interactive ACP agents: messages, interrupts, and permission requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from ...run.events import Event, Interrupted, Notice
from ...run.model import NoticeLevel
from ...run.outcome import FINALIZE_TOOL
from ...text.plain import one_line
from .._conversation import Conversation, State
from .._json_lines import is_deep, items, mapping, string
from ..child import Start, prompt_of
from ..question import Question, content_of
from ._programs import denied_tools
from ._requests import form, permission
from ._stream import AcpStream, Call

_SHOWS = ("agent_message_chunk", "agent_thought_chunk", "tool_call")
"""Updates that show an agent working on its prompt."""
_TASK = ""
"""The task's id in the outbox, next to message ids."""

_Reader = Callable[[dict[str, Any]], list[Event]]


class AcpConversation(AcpStream, Conversation):
    """One session, with as many prompts as all messages need.

    The protocol cannot send a message to a running turn: a message cancels the turn and becomes the next prompt. It is
    delivered once the agent works on that prompt or answers it.
    """

    def __init__(self, start: Start, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.is_stdin_done = False
        self.outbox.put(_TASK, prompt_of(start))
        self._is_sent = False
        """Whether the bridge has passed on this turn's prompt."""
        self._is_cancelled = False
        self._denied = denied_tools(start.meta.tools)
        """Calls to these are denied, because the run's tools exclude them."""
        self._updates |= {kind: self._showing(self._updates[kind]) for kind in _SHOWS}

    # --- messages to the agent ---

    @property
    def may_leave(self) -> bool:
        return self.state is not State.RUNNING

    def tell_turn(self) -> None:
        self.end_turn()

    def begin_turn(self) -> None:
        self._order({"prompt": list(self.outbox.send().values())})
        self.note(ended=None)
        self._is_sent = self._is_cancelled = self.turn_ended = False
        self.state = State.RUNNING

    def end_turn(self) -> None:
        if self.state is State.RUNNING and not self._is_cancelled:
            self._is_cancelled = True
            self._order({"cancel": True})

    def respond(self, own_id: object, answer: object) -> list[Event]:
        self._order({"reply": {"id": own_id, "answer": answer}})
        return []

    def _order(self, line: dict[str, Any]) -> None:
        if not self.is_stdin_done:
            self.say(msgspec.json.encode(line) + b"\n")

    # --- replies to messages ---

    def _ready(self) -> list[Event]:
        if self.state is not State.STARTING:
            return []
        stays, self.stays = self.stays, None
        self.state = State.INTERRUPTED if stays else State.IDLE
        if stays and list(self.outbox.unsent) == [_TASK]:
            return [Interrupted()]  # the task is sent with the next message
        self.go_on()
        return []

    def _begin_turn(self) -> None:
        super()._begin_turn()
        self._is_sent = True

    def _showing(self, read: _Reader) -> _Reader:
        return lambda update: [*(self.outbox.seen(self.outbox.sent) if self._is_sent else ()), *read(update)]

    def _turn_ended(self, result: dict[str, Any]) -> list[Event]:
        events = [*self.outbox.seen(self.outbox.sent), *self.withdrawn(self.questions), *super()._turn_ended(result)]
        return [*events, *self.turn_over(is_interrupted=result.get("stopReason") == "cancelled")]

    def _failed(self, method: str, error: dict[str, Any]) -> list[Event]:
        events = super()._failed(method, error)
        if method not in ("", "session/prompt") or self.state is not State.RUNNING:
            return events
        words = one_line(self.facts.error_message or "", 600)
        messages = self.outbox.refused(self.outbox.sent, words)
        return [*messages, *self.withdrawn(self.questions), *events, *self.turn_over(is_interrupted=False)]

    # --- requests of the agent ---

    def _asked_for(self, key: object, params: dict[str, Any]) -> list[Event]:
        events = super()._asked_for(key, params)
        fields = mapping(params.get("toolCall"))
        call = self._calls.get(string(fields.get("toolCallId"))) or Call()
        options = [mapping(option) for option in items(params.get("options"))]
        named: dict[str, dict[str, Any]] = {}
        for option in options:
            named.setdefault(string(option.get("kind")), option)
        allowing, refusing = named.get("allow_once", {}), named.get("reject_once", {})
        allowed, denied = string(allowing.get("optionId")) or None, string(refusing.get("optionId")) or None
        if call.name == FINALIZE_TOOL:
            return [*events, *self.respond(key, allowed)]
        if is_deep([call.args, fields]):
            self.respond(key, denied)
            self.denied(one_line(f"{call.name} {call.title}", 200))
            what = f"denied {one_line(call.name, 80)}: its arguments are nested too deeply to be shown"
            return [*events, Notice(level=NoticeLevel.WARNING, text=what)]
        request = permission(_known_as(key), call, fields, allowing)
        if not self._denied.isdisjoint((request.tool_name, string(fields.get("kind")))):
            self.respond(key, denied)
            what = f"denied {request.tool_name}: the tools of this run only read"
            self.denied(one_line(f"{request.tool_name} {call.title}", 200))
            return [*events, Notice(level=NoticeLevel.INFO, text=what)]
        self.questions[request.id] = Question(request, denied, allowed, own_id=key)
        return [*events, request]

    def _form_came(self, key: object, params: dict[str, Any]) -> list[Event]:
        schema = mapping(params.get("requestedSchema"))
        if params.get("mode") != "form" or not (asked := form(_known_as(key), params, schema)):
            return self.respond(key, None)

        def filled(text: str) -> object:
            return content_of(text, schema) or None

        self.questions[asked.id] = Question(asked, None, filled=filled, own_id=key)
        return [asked]

    def _decided(self, key: object, outcome: dict[str, Any]) -> list[Event]:
        """Handle an answer that was passed on: if subdeck did not give it, the turn was cancelled."""
        self._asked.pop(key, None)
        return self.withdrawn([_known_as(key)])


def _known_as(key: object) -> str:
    return msgspec.json.encode(key).decode("utf-8", "replace")[:200]
