"""An app-server that is talked to: messages, interrupts, and its questions, which go to people."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace

from ...run.events import Decision, Event, Interrupted, Message
from ...run.model import MessageState, RunReason, Verdict
from ...text.plain import one_line
from .._json_lines import mapping, string
from ._app_stream import AppStream
from ._items import fault_words
from ._requests import Asked, asked
from ._stream import warning
from ._talk import FIRST_FREE, Talk, asks_by_rules, message_params, request as line_of

_MOST_CHANGES = 1000
"""Edits that were begun and are remembered, so that a question about one can show it."""


class Turn(Enum):
    COMING = "coming"
    """It was asked for: the one of the task, or of a message."""
    RUNS = "runs"
    OVER = "over"
    INTERRUPTED = "interrupted"
    """Nothing comes before the next message."""


class TalkingStream(AppStream):
    """One thread, and as many turns as it takes to say everything.

    A message is told to the turn that runs. Where Codex does not take it, because that turn has just ended or is of a
    kind that takes none, a turn of its own follows. It is delivered when it stands in the thread as what the user said;
    what Codex was told and had not shown before an interrupt it has forgotten (0.169), so that is told again.
    """

    talks = True

    def __init__(self, talk: Talk, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(talk, clock)
        self._talking = talk
        self._numbers = count(FIRST_FREE)
        self._state = Turn.COMING
        self._takes_messages = True
        """Whether the turn that runs does."""
        self._interrupting: bool | None = None
        """Whether the child stays once its turn has been interrupted; None while nobody wants that."""
        self._unsaid: dict[str, str] = {}
        """Messages by their ids that Codex is still to be told."""
        self._unshown: dict[str, str] = {}
        """Those that it was told and has not shown yet."""
        self._sent: dict[int, tuple[str, str]] = {}
        """Requests of ours that are not answered: the method, and the id of the message."""
        self._asked: dict[str, tuple[object, str, Asked]] = {}
        """What Codex asks: its own id and turn, by the id under which that is known here."""
        self._usual: Verdict | None = None
        """What holds for a call that no rule mentions; None has a person asked. What is allowed runs outside the
        sandbox (0.169), so that only where there is none it may go on as if it had not been asked about."""
        self._changes: dict[str, dict[str, Any]] = {}
        """Edits that were begun, by the ids of their items."""
        self._readers |= {
            "item/started": self._item_started,
            "item/completed": self._item_completed,
            "serverRequest/resolved": self._resolved,
        }

    # --- what people say ---

    @property
    def is_waiting(self) -> bool:
        return self._state is Turn.INTERRUPTED

    def tell(self, message_id: str, text: str) -> None:
        self._unsaid[message_id] = text
        self._say_next()

    def interrupt(self, *, stays: bool) -> None:
        if self.is_stdin_done:
            return
        if not stays and (self._state in (Turn.OVER, Turn.INTERRUPTED) or not self._thread):
            self._leave()
        elif self._state is not Turn.INTERRUPTED:
            is_asked = self._interrupting is not None
            self._interrupting = stays and self._interrupting is not False
            if self._state is Turn.RUNS and not is_asked:
                self._end_turn()

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        number, _, question = self._asked.pop(request_id, (None, "", None))
        if question is None:
            return
        if verdict is Verdict.DENY and text.strip() and self._state is Turn.RUNS and self._takes_messages:
            # It is told before it is denied: then the model reads both at once.
            self._steer("", f"Denied ({question.subject}): {text.strip()}")
        self.respond(number, question.result(verdict, text))

    def close(self) -> None:
        if self.is_waiting:
            self._leave()

    # --- what Codex is told ---

    def _say_next(self) -> None:
        """Tell what can be told now; where nothing is left to say after a turn, the run is over."""
        if self._state is Turn.RUNS:
            if self._interrupting is None and self._takes_messages:
                for message_id, text in self._unsaid.items():
                    self._steer(message_id, text)
                self._unshown |= self._unsaid
                self._unsaid.clear()
        elif self._state is not Turn.COMING and not self._awaits_steering:
            self._unsaid = self._unshown | self._unsaid
            self._unshown = {}
            if self._unsaid:
                message_id = next(iter(self._unsaid))
                self._unshown[message_id] = text = self._unsaid.pop(message_id)
                self._state = Turn.COMING
                self._send("turn/start", message_id, message_params(self._thread, message_id, text))
            elif self._state is Turn.OVER:
                self._leave()

    @property
    def _awaits_steering(self) -> bool:
        return any(method == "turn/steer" and message_id for method, message_id in self._sent.values())

    def _steer(self, message_id: str, text: str) -> None:
        said = message_params(self._thread, message_id, text)
        self._send("turn/steer", message_id, {**said, "expectedTurnId": self._turn})

    def _end_turn(self) -> None:
        self._send("turn/interrupt", "", {"threadId": self._thread, "turnId": self._turn})

    def _send(self, method: str, message_id: str, params: dict[str, Any]) -> None:
        number = next(self._numbers)
        self._sent[number] = method, message_id
        self.say(line_of(number, method, params))

    def _leave(self) -> None:
        """Have it go: nothing more is said."""
        self._state = Turn.OVER
        self.finished_after = 0
        self.is_stdin_done = True
        if not self.facts.finished:
            self.note(ended=RunReason.INTERRUPTED)

    # --- what comes of it ---

    def _answered(self, message: dict[str, Any]) -> list[Event]:
        number = message.get("id")
        method, message_id = self._sent.pop(number, ("", "")) if isinstance(number, int) else ("", "")
        if not method or ("error" not in message and method == "turn/start"):
            return super()._answered(message)
        events: list[Event] = []
        if "error" in message:
            words = one_line(fault_words(mapping(message["error"])), 600)
            events = self._not_taken(method, message_id, words)
        self._say_next()
        return events

    def _not_taken(self, method: str, message_id: str, words: str) -> list[Event]:
        if method == "turn/interrupt":
            if self._state is not Turn.RUNS:
                return []
            self._interrupting = None
            return warning(f"the agent could not be interrupted: {words}")
        text = self._unshown.pop(message_id, None)
        if method == "turn/start":
            self._state = Turn.INTERRUPTED if self.facts.ended is RunReason.INTERRUPTED else Turn.OVER
            return [Message(id=message_id, state=MessageState.REFUSED, reason=words)]
        if text is not None:
            self._unsaid = {message_id: text, **self._unsaid}
            self._takes_messages = False
        return []

    def _thread_opened(self, thread: dict[str, Any], result: dict[str, Any]) -> list[Event]:
        is_free = mapping(result.get("sandbox")).get("type") == "dangerFullAccess"
        if is_free and asks_by_rules(self._talking.start.meta):
            self._usual = Verdict.ALLOW
        return super()._thread_opened(thread, result)

    def _turn_started(self, params: dict[str, Any]) -> list[Event]:
        events = super()._turn_started(params)
        self._state = Turn.RUNS
        self._takes_messages = True
        if self._interrupting is not None:
            self._end_turn()
        self._say_next()
        return events

    def _turn_completed(self, params: dict[str, Any]) -> list[Event]:
        turn = mapping(params.get("turn"))
        if self._turn and string(turn.get("id")) != self._turn:
            return []
        events = [*self._withdrawn(self._turn), *super()._turn_completed(params)]
        stays, self._interrupting = self._interrupting, None
        self._state = Turn.OVER
        if stays is False:
            return events
        if stays and turn.get("status") == "interrupted":
            self._state = Turn.INTERRUPTED
            events.append(Interrupted())
        self.finished_after = None
        self.is_stdin_done = False
        self._say_next()
        return events

    def _item_started(self, params: dict[str, Any]) -> list[Event]:
        item = mapping(params.get("item"))
        match item.get("type"):
            case "userMessage":
                return self._shown(item)
            case "fileChange" if len(self._changes) < _MOST_CHANGES:
                self._changes[string(item.get("id"))] = item
            case _:
                pass
        return self.began(item)

    def _item_completed(self, params: dict[str, Any]) -> list[Event]:
        item = mapping(params.get("item"))
        if item.get("type") == "userMessage":
            return self._shown(item)
        self._changes.pop(string(item.get("id")), None)
        return self.item_completed(item)

    def _shown(self, item: dict[str, Any]) -> list[Event]:
        """Take what stands in the thread as what the user said."""
        message_id = string(item.get("clientId"))
        if self._unshown.pop(message_id, None) is None:
            return []
        return [Message(id=message_id, state=MessageState.DELIVERED)]

    # --- what Codex asks ---

    def _ask(self, id_: object, method: str, params: dict[str, Any]) -> list[Event]:
        known_as = _known_as(id_)
        change = self._changes.get(string(params.get("itemId")), {})
        question = asked(known_as, method, params, change)
        if question is None:
            return super()._ask(id_, method, params)
        self._asked[known_as] = id_, string(params.get("turnId")), question
        request = question.request
        return [replace(request, usual=self._usual) if request.tool_name else request]

    def _resolved(self, params: dict[str, Any]) -> list[Event]:
        known_as = _known_as(params.get("requestId"))
        if self._asked.pop(known_as, None) is None:
            return []
        return [Decision(request=known_as, verdict=Verdict.WITHDRAWN)]

    def _withdrawn(self, turn: str) -> list[Event]:
        """Take back what was asked in a turn that is over."""
        gone = [known_as for known_as, (_, asked_in, _) in self._asked.items() if asked_in == turn]
        for known_as in gone:
            del self._asked[known_as]
        return [Decision(request=known_as, verdict=Verdict.WITHDRAWN) for known_as in gone]


def _known_as(id_: object) -> str:
    """Return an id of Codex as text: it gives numbers and words."""
    return msgspec.json.encode(id_).decode("utf-8", "replace")[:200]
