"""An interactive app-server: messages, interrupts, and questions to the user."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace

from ...run.events import Event
from ...run.model import RunReason, Verdict
from ...text.plain import one_line
from .._conversation import Conversation, State
from .._json_lines import mapping, string
from ..question import Question
from ._app_stream import AppStream
from ._items import fault_words
from ._requests import asked, subject
from ._stream import warning
from ._talk import FIRST_FREE, Talk, asks_by_rules, message_params, request as line_of

_MOST_CHANGES = 1000
"""Maximum started edits remembered, so that a question about one can show it."""


class CodexConversation(AppStream, Conversation):
    """One thread, with as many turns as all messages need.

    A message goes to the running turn. If that turn has just ended, or accepts no messages, the message begins a new
    turn. It is delivered once it appears in the thread as a user message. Codex (0.169) forgets messages that it had
    not shown before an interrupt, so they are sent again.
    """

    def __init__(self, talk: Talk, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(talk, clock)
        self._talking = talk
        self._numbers = count(FIRST_FREE)
        self._takes_messages = True
        """Whether the running turn accepts messages."""
        self._is_ending = False
        """Whether an interrupt was requested."""
        self._sent: dict[int, tuple[str, str]] = {}
        """Unanswered requests to Codex: the method, and the message's id."""
        self._usual: Verdict | None = None
        """The verdict for a call that no rule matches; None asks the user. Allowed calls run outside the sandbox
        (0.169), so a call may run without a question only if there is no sandbox.
        """
        self._changes: dict[str, dict[str, Any]] = {}
        """Started edits, by item id."""
        self._readers |= {
            "item/started": self._item_started,
            "item/completed": self._item_completed,
            "serverRequest/resolved": self._resolved,
        }

    # --- messages to Codex ---

    @property
    def may_leave(self) -> bool:
        return super().may_leave or not self._thread

    @property
    def is_busy(self) -> bool:
        """Whether it is still unknown if the turn accepted a message."""
        return any(method == "turn/steer" and message_id for method, message_id in self._sent.values())

    def go_on(self) -> None:
        if self.state in (State.IDLE, State.INTERRUPTED) and not self.is_busy:
            self.outbox.take_back(self.outbox.sent)
        super().go_on()

    def tell_turn(self) -> None:
        if self.state is State.RUNNING and self.stays is None and self._takes_messages:
            for message_id, text in self.outbox.send().items():
                self._steer(message_id, text)

    def begin_turn(self) -> None:
        if self.is_busy:
            return
        message_id, text = self.outbox.send_next()
        self.state = State.STARTING
        self._send("turn/start", message_id, message_params(self._thread, message_id, text))

    def end_turn(self) -> None:
        if self.state is State.RUNNING and not self._is_ending:
            self._is_ending = True
            self._send("turn/interrupt", "", {"threadId": self._thread, "turnId": self._turn})

    def answer(self, question: Question, verdict: Verdict, text: str) -> None:
        if verdict is Verdict.DENY and text.strip() and self.state is State.RUNNING and self._takes_messages:
            # Sent before the denial, so that the model reads both at once.
            self._steer("", f"Denied ({subject(question.request)}): {text.strip()}")
        super().answer(question, verdict, text)

    def _steer(self, message_id: str, text: str) -> None:
        params = message_params(self._thread, message_id, text)
        self._send("turn/steer", message_id, {**params, "expectedTurnId": self._turn})

    def _send(self, method: str, message_id: str, params: dict[str, Any]) -> None:
        number = next(self._numbers)
        self._sent[number] = method, message_id
        self.say(line_of(number, method, params))

    # --- responses ---

    def _answered(self, message: dict[str, Any]) -> list[Event]:
        number = message.get("id")
        method, message_id = self._sent.pop(number, ("", "")) if isinstance(number, int) else ("", "")
        if not method or ("error" not in message and method == "turn/start"):
            return super()._answered(message)
        events: list[Event] = []
        if "error" in message:
            words = one_line(fault_words(mapping(message["error"])), 600)
            events = self._not_taken(method, message_id, words)
        self.go_on()
        return events

    def _not_taken(self, method: str, message_id: str, words: str) -> list[Event]:
        match method:
            case "turn/interrupt" if self.state is State.RUNNING:
                self.stays, self._is_ending = None, False
                return warning(f"the agent could not be interrupted: {words}")
            case "turn/start":
                self.state = State.INTERRUPTED if self.facts.ended is RunReason.INTERRUPTED else State.IDLE
                return self.outbox.refused([message_id], words)
            case "turn/steer" if message_id in self.outbox.sent:
                self.outbox.take_back([message_id])
                self._takes_messages = False
            case _:
                pass
        return []

    def _thread_opened(self, thread: dict[str, Any], result: dict[str, Any]) -> list[Event]:
        is_free = mapping(result.get("sandbox")).get("type") == "dangerFullAccess"
        if is_free and asks_by_rules(self._talking.start.meta):
            self._usual = Verdict.ALLOW
        return super()._thread_opened(thread, result)

    def _turn_started(self, params: dict[str, Any]) -> list[Event]:
        events = super()._turn_started(params)
        self.state = State.RUNNING
        self._takes_messages, self._is_ending = True, False
        if self.stays is not None:
            self.end_turn()
        self.go_on()
        return events

    def _turn_completed(self, params: dict[str, Any]) -> list[Event]:
        turn = mapping(params.get("turn"))
        if self._turn and string(turn.get("id")) != self._turn:
            return []
        of_turn = [known_as for known_as, question in self.questions.items() if question.turn == self._turn]
        events = [*self.withdrawn(of_turn), *super()._turn_completed(params)]
        self.is_stdin_done = False
        return [*events, *self.turn_over(is_interrupted=turn.get("status") == "interrupted")]

    def _item_started(self, params: dict[str, Any]) -> list[Event]:
        item = mapping(params.get("item"))
        match item.get("type"):
            case "userMessage":
                return self.outbox.seen([string(item.get("clientId"))])
            case "fileChange" if len(self._changes) < _MOST_CHANGES:
                self._changes[string(item.get("id"))] = item
            case _:
                pass
        return self.began(item)

    def _item_completed(self, params: dict[str, Any]) -> list[Event]:
        item = mapping(params.get("item"))
        if item.get("type") == "userMessage":
            return self.outbox.seen([string(item.get("clientId"))])
        self._changes.pop(string(item.get("id")), None)
        return self.item_completed(item)

    # --- questions of Codex ---

    def _ask(self, id_: object, method: str, params: dict[str, Any]) -> list[Event]:
        known_as = _known_as(id_)
        change = self._changes.get(string(params.get("itemId")), {})
        question = asked(known_as, method, params, change)
        if question is None:
            return super()._ask(id_, method, params)
        self.questions[known_as] = replace(question, own_id=id_, turn=string(params.get("turnId")))
        request = question.request
        return [replace(request, usual=self._usual) if request.tool_name else request]

    def _resolved(self, params: dict[str, Any]) -> list[Event]:
        return self.withdrawn([_known_as(params.get("requestId"))])


def _known_as(id_: object) -> str:
    """Return Codex's id as text; it uses numbers and strings."""
    return msgspec.json.encode(id_).decode("utf-8", "replace")[:200]
