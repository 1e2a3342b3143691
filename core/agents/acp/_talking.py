"""An agent of the protocol that is talked to: messages, interrupts, and what it asks people leave for."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec
from msgspec import Struct

from ...run.events import Decision, Event, Interrupted, Message, Notice
from ...run.model import MessageState, NoticeLevel, RunReason, Verdict
from ...run.outcome import FINALIZE_TOOL
from ...text.plain import one_line
from .._json_lines import is_deep, items, mapping, string
from ..child import Start, prompt_of
from ..forms import content_of
from ._programs import denied_tools
from ._requests import form, permission
from ._stream import AcpStream, Call

_SHOWS = ("agent_message_chunk", "agent_thought_chunk", "tool_call")
"""Updates by which an agent shows that it is at work on its prompt."""
_TASK = ""
"""The task among what is to be said, beside the ids of messages."""

_Reader = Callable[[dict[str, Any]], list[Event]]


class Turn(Enum):
    COMING = "coming"
    """There is no session yet."""
    RUNS = "runs"
    OVER = "over"
    INTERRUPTED = "interrupted"
    """Nothing comes before the next message."""


class _Question(Struct, frozen=True):
    """What the agent asks, by its own id, and what it is answered."""

    number: object
    allowing: str | None = None
    """The option by which a call is allowed once; None where there is none, or no call is asked about."""
    refusing: str | None = None
    schema: dict[str, Any] | None = None
    """Of a form."""

    def answer(self, verdict: Verdict, text: str) -> object:
        if self.schema is not None:
            return (content_of(text, self.schema) or None) if verdict is Verdict.REPLY else None
        return self.allowing if verdict in (Verdict.ALLOW, Verdict.ALLOW_RUN) else self.refusing


class TalkingStream(AcpStream):
    """One session, and as many prompts as it takes to say everything.

    The protocol has no message to a turn that runs: one that comes cancels it, and is the next prompt. It is delivered
    when the agent is seen at work on that, or answers it.
    """

    talks = True

    def __init__(self, start: Start, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.is_stdin_done = False
        self._state = Turn.COMING
        self._unsaid: dict[str, str] = {_TASK: prompt_of(start)}
        """What the agent is still to be told, in its order."""
        self._unshown: tuple[str, ...] = ()
        """What it was told in the prompt of this turn, as long as it does not show it."""
        self._is_sent = False
        """Whether the bridge has passed that prompt on."""
        self._is_cancelled = False
        self._interrupting: bool | None = None
        """Whether the child stays once its turn has been interrupted; None while nobody wants that."""
        self._denied = denied_tools(start.meta.tools)
        """Requests to use these are denied, because the tools of the run rule them out."""
        self._questions: dict[str, _Question] = {}
        """By the ids under which they are known here."""
        self._updates |= {kind: self._showing(self._updates[kind]) for kind in _SHOWS}

    # --- what people say ---

    @property
    def is_waiting(self) -> bool:
        return self._state is Turn.INTERRUPTED

    def tell(self, message_id: str, text: str) -> None:
        self._unsaid[message_id] = text
        if self._state is Turn.RUNS:
            self._cancel()
        else:
            self._say_next()

    def interrupt(self, *, stays: bool) -> None:
        if self.is_stdin_done:
            return
        if not stays and self._state is not Turn.RUNS:
            self._leave()
        elif self._state in (Turn.COMING, Turn.RUNS):
            self._interrupting = stays and self._interrupting is not False
            if self._state is Turn.RUNS:
                self._cancel()

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        question = self._questions.pop(request_id, None)
        if question is not None:
            self._order({"reply": {"id": question.number, "answer": question.answer(verdict, text)}})

    def close(self) -> None:
        if self.is_waiting:
            self._leave()

    # --- what the agent is told ---

    def _say_next(self) -> None:
        """Begin a turn with all that is to be said; where that is nothing, the run is over."""
        if self._state is Turn.COMING:
            return
        if self._unsaid:
            self._order({"prompt": list(self._unsaid.values())})
            self._unshown = tuple(filter(None, self._unsaid))
            self._unsaid = {}
            self.note(ended=None)
            self._is_sent = self._is_cancelled = self.turn_ended = False
            self._state = Turn.RUNS
        elif self._state is Turn.OVER:
            self._leave()

    def _cancel(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._order({"cancel": True})

    def _order(self, line: dict[str, Any]) -> None:
        if not self.is_stdin_done:
            self.say(msgspec.json.encode(line) + b"\n")

    def _leave(self) -> None:
        """Have it go: nothing more is said."""
        self._state = Turn.OVER
        self.finished_after = 0.0
        self.is_stdin_done = self.has_left = True
        if not self.facts.finished and self.facts.ended is None:
            self.note(ended=RunReason.INTERRUPTED)

    # --- what comes of it ---

    def _ready(self) -> list[Event]:
        if self._state is not Turn.COMING or self.is_stdin_done:
            return []
        stays, self._interrupting = self._interrupting, None
        self._state = Turn.INTERRUPTED if stays else Turn.OVER
        if stays and list(self._unsaid) == [_TASK]:
            return [Interrupted()]  # the task goes with what is said next
        self._say_next()
        return []

    def _begin_turn(self) -> None:
        super()._begin_turn()
        self._is_sent = True

    def _showing(self, read: _Reader) -> _Reader:
        return lambda update: [*(self._delivered() if self._is_sent else ()), *read(update)]

    def _delivered(self) -> list[Event]:
        shown, self._unshown = self._unshown, ()
        return [Message(id=message_id, state=MessageState.DELIVERED) for message_id in shown]

    def _turn_ended(self, result: dict[str, Any]) -> list[Event]:
        events = [*self._delivered(), *self._withdrawn(), *super()._turn_ended(result)]
        return [*events, *self._over(is_cancelled=result.get("stopReason") == "cancelled")]

    def _failed(self, method: str, error: dict[str, Any]) -> list[Event]:
        events = super()._failed(method, error)
        if method not in ("", "session/prompt") or self._state is not Turn.RUNS:
            return events
        words, refused = one_line(self.facts.error_message or "", 600), self._unshown
        self._unshown = ()
        messages = [Message(id=each, state=MessageState.REFUSED, reason=words) for each in refused]
        return [*messages, *self._withdrawn(), *events, *self._over(is_cancelled=False)]

    def _over(self, *, is_cancelled: bool) -> list[Event]:
        """Take the end of a turn: it is the run's, unless something is left to say, or waited for."""
        stays, self._interrupting = self._interrupting, None
        self._state = Turn.OVER
        if stays is False:
            self._leave()
            return []
        events: list[Event] = []
        if stays and is_cancelled:
            self._state = Turn.INTERRUPTED
            events = [Interrupted()]
        self.finished_after = None
        self._say_next()
        return events

    # --- what the agent asks ---

    def _asked_for(self, key: object, params: dict[str, Any]) -> list[Event]:
        events = super()._asked_for(key, params)
        fields = mapping(params.get("toolCall"))
        call = self._calls.get(string(fields.get("toolCallId"))) or Call()
        options = [mapping(option) for option in items(params.get("options"))]
        named: dict[str, dict[str, Any]] = {}
        for option in options:
            named.setdefault(string(option.get("kind")), option)
        allowing, refusing = named.get("allow_once", {}), named.get("reject_once", {})
        known_as = _known_as(key)
        self._questions[known_as] = _Question(
            key, string(allowing.get("optionId")) or None, string(refusing.get("optionId")) or None
        )
        if call.name == FINALIZE_TOOL:
            self.reply(known_as, Verdict.ALLOW, "")
            return events
        if is_deep([call.args, fields]):
            self.reply(known_as, Verdict.DENY, "")
            self.denied(one_line(f"{call.name} {call.title}", 200))
            what = f"denied {one_line(call.name, 80)}: its arguments are nested too deeply to be shown"
            return [*events, Notice(level=NoticeLevel.WARNING, text=what)]
        request = permission(known_as, call, fields, allowing)
        if not self._denied.isdisjoint((request.tool_name, string(fields.get("kind")))):
            self.reply(known_as, Verdict.DENY, "")
            what = f"denied {request.tool_name}: the tools of this run only read"
            self.denied(one_line(f"{request.tool_name} {call.title}", 200))
            return [*events, Notice(level=NoticeLevel.INFO, text=what)]
        return [*events, request]

    def _form_came(self, key: object, params: dict[str, Any]) -> list[Event]:
        schema = mapping(params.get("requestedSchema"))
        known_as = _known_as(key)
        self._questions[known_as] = _Question(key, schema=schema)
        if params.get("mode") == "form" and (asked := form(known_as, params, schema)):
            return [asked]
        self.reply(known_as, Verdict.DENY, "")
        return []

    def _decided(self, key: object, outcome: dict[str, Any]) -> list[Event]:
        """Take the answer that was passed on: where it is not ours, the turn was cancelled."""
        self._asked.pop(key, None)
        known_as = _known_as(key)
        if self._questions.pop(known_as, None) is None:
            return []
        return [Decision(request=known_as, verdict=Verdict.WITHDRAWN)]

    def _withdrawn(self) -> list[Event]:
        gone = tuple(self._questions)
        self._questions.clear()
        return [Decision(request=known_as, verdict=Verdict.WITHDRAWN) for known_as in gone]


def _known_as(key: object) -> str:
    return msgspec.json.encode(key).decode("utf-8", "replace")[:200]
