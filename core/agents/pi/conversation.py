"""Interactive pi, in its rpc mode: commands go to its stdin, and its output is read as in JSON mode.

pi loses a prompt that arrives while another turn is about to begin, and a steering message to a pi that has just
stopped stays in its queue forever. So only one prompt is sent at a time, later messages wait here, and a turn is over
only when pi's queue is empty.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from ...run.events import Event, Interrupted, Notice
from ...run.model import NoticeLevel, RunReason, Verdict
from ...text.plain import one_line
from .._conversation import Conversation, State
from .._json_lines import count, decode, error_words, items, mapping, string
from ..child import Start, prompt_of
from ._dialogs import UNREADABLE, asked, denial, is_unreadable
from .stream import QUIET_AFTER_END, PiStream, kind

_NUDGE = "One more message from the user follows."
"""Sent to pi before 1.0 if its queue has a message that was too late for the last turn."""

_LEVELS = {"warning": NoticeLevel.WARNING, "error": NoticeLevel.WARNING}
_COMPLETE = frozenset({"stop", "length"})
"""Stop reasons of a turn that finished in spite of a late interrupt."""

_PROMPT, _STEER, _ABORT, _QUEUE = "prompt-", "steer-", "abort", "queue"
_STATE, _UNSAID, _ENDING = "state-", "unsaid-", "ending-"
"""Prefixes of command ids, followed by a message id or a number. The state is requested for its data, or to find out
whether a turn begins or is over if pi does not report it.
"""


class PiConversation(PiStream, Conversation):
    """The stream of one pi process in rpc mode; without a `start`, a recording of either mode."""

    def __init__(self, start: Start | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.is_stdin_done = start is None
        self._is_recorded = start is None
        self._began = False
        """Whether any turn began."""
        self._begins: str | None = ""
        """The id of the next turn's message; empty for the run's prompt, None once it was seen."""
        self._is_nudged = False
        self._was_interrupted = False
        """Whether the last turn was interrupted."""
        self._asked = 0
        self._asks_end = False
        """Whether to ask pi if the turn is over."""
        self._announces = True
        """Whether pi reports the end unasked."""
        self._is_quiet = False
        """Whether it was silent for so long after a turn that the turn counts as over."""
        self._heard_at = 0.0
        self._closing: dict[str, float] = {}
        """When requests that close automatically do so."""
        self._later: list[Event] = []
        """Events to return with the next line."""
        self._readers |= {
            "response": self._answered,
            "extension_ui_request": self._dialog,
            "extension_error": self._extension_failed,
        }
        if start is not None:
            self._prompt("", prompt_of(start).strip())

    # --- messages to pi ---

    @property
    def may_leave(self) -> bool:
        return self.state is State.INTERRUPTED or not self._began

    def tell_turn(self) -> None:
        if self.state is State.RUNNING:
            for message_id, text in self.outbox.send().items():
                self._command({"type": "steer", "id": f"{_STEER}{message_id}", "message": text})

    def begin_turn(self) -> None:
        if self.state is State.INTERRUPTED:
            self._say_next()

    def end_turn(self) -> None:
        if self.state is not State.STARTING:
            self._abort()

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        self._closing.pop(request_id, None)
        super().reply(request_id, verdict, text)

    def respond(self, own_id: str, answer: dict[str, Any]) -> list[Event]:
        self._command({"type": "extension_ui_response", "id": own_id, **answer})
        return []

    def replies(self) -> bytes:
        quiet = self.finished_after
        if quiet and self.state is State.IDLE and self._clock() >= self._heard_at + quiet and not self._is_quiet:
            self._is_quiet = self._asks_end = True
        if self._asks_end:
            self._asks_end = False
            self._ask_state(_ENDING)
        return super().replies()

    def _prompt(self, message_id: str, text: str) -> None:
        self.state = State.STARTING
        self._begins = message_id
        self._command({"type": "prompt", "id": f"{_PROMPT}{message_id}", "message": text})

    def _abort(self) -> None:
        """End the turn; first close dialogs, which would otherwise block its end."""
        for request_id in tuple(self.questions):
            self.respond(request_id, {"cancelled": True})
            self._withdraw(request_id)
        if not self.stays:
            self._command({"type": "clear_queue"})  # or pi continues with its queue
        self._command({"type": "abort", "id": _ABORT})

    def _ask_state(self, why: str) -> None:
        self._asked += 1
        self._command({"type": "get_state", "id": f"{why}{self._asked}"})

    def _command(self, command: dict[str, Any]) -> None:
        if not self._is_recorded:
            self.say(msgspec.json.encode(command) + b"\n")

    # --- output of pi ---

    def feed(self, line: bytes) -> list[Event]:
        if self.has_left and kind(line) == ("response", ""):
            fields = decode(line) or {}  # answers to earlier requests may contain the session id for resuming
            self.note(session_id=string(mapping(fields.get("data")).get("sessionId")) or self.facts.session_id)
        return super().feed(line)

    def take(self, line: bytes) -> list[Event]:
        self._heard_at = self._clock()
        events = super().take(line)
        for request_id in [key for key, closes in self._closing.items() if self._heard_at >= closes]:
            self._withdraw(request_id)
        if self._later:
            events = [*self._later, *events]
            self._later.clear()
        return events

    def end(self) -> list[Event]:
        events = [*self._later, *super().end()]
        self._later.clear()
        return events

    def user_said(self, line: bytes) -> list[Event]:
        """Mark a message as delivered: it is now in pi's conversation."""
        if self._begins is not None:
            delivered, self._begins = self._begins, None
        else:
            delivered_text = _text_of(mapping((decode(line) or {}).get("message")))
            # A leading slash may name a template, which is replaced by its text.
            sent_ids = (key for key, text in self.outbox.sent.items() if text == delivered_text or text.startswith("/"))
            delivered = next(sent_ids, "")
        return self.outbox.seen([delivered])

    def _agent_started(self, fields: dict[str, Any]) -> list[Event]:
        if self.state is State.CLOSED:
            return []
        events = super()._agent_started(fields)
        if self.stays is not None and self.state is State.IDLE:
            self.stays = None  # pi continues with an earlier message
            events.append(Interrupted())
        if self.state is State.STARTING and self.stays is not None:
            self._abort()
        self._work()
        return events

    def _work(self) -> None:
        self.state = State.RUNNING
        self._began = True
        self._was_interrupted = self._asks_end = self._is_quiet = False
        self.tell_turn()

    def _agent_ended(self, announced: bool | None) -> list[Event]:
        events = super()._agent_ended(announced)
        if announced is not True and self.state is not State.CLOSED:
            self.state = State.IDLE
            self._announces = announced is not None
            self._asks_end = True
        return events

    def _retry_started(self, fields: dict[str, Any]) -> list[Event]:
        events = super()._retry_started(fields)
        if self.state is State.IDLE:
            self._work()
        return events

    def _compaction_started(self, fields: dict[str, Any]) -> list[Event]:
        self._asks_end = False
        return super()._compaction_started(fields)

    def _compaction_ended(self, fields: dict[str, Any]) -> list[Event]:
        events = super()._compaction_ended(fields)
        self._asks_end = self.state is State.IDLE
        return events

    def _agent_settled(self, fields: dict[str, Any]) -> list[Event]:
        events = super()._agent_settled(fields)
        self._asks_end = False
        return [*events, *self._over()]

    def _over(self) -> list[Event]:
        """Continue with the next message, or wait, or finish: nothing follows the last turn on its own."""
        if self._is_recorded or self.state is State.CLOSED:
            return []
        self.state = State.IDLE
        self.finished_after = None
        goes_on: list[Event] = []
        stays, self.stays = self.stays, None
        if stays is not None:
            self._was_interrupted = not self._is_complete
            self.note(finished=not self._was_interrupted)
            if not stays:
                self.finish()
                return []
            if self._was_interrupted and (self._unshown or self.outbox.unsent):
                goes_on.append(Interrupted())  # with earlier messages
        if self._unshown:
            self._command({"type": "clear_queue", "id": _QUEUE})
        elif self.outbox.unsent:
            self._say_next()
        elif self._was_interrupted:
            self.state = State.INTERRUPTED
            return [Interrupted()]
        else:
            self.finish()
        return goes_on

    @property
    def _unshown(self) -> dict[str, str]:
        """Messages sent while pi worked, which it has not shown."""
        return {message_id: text for message_id, text in self.outbox.sent.items() if message_id != self._begins}

    @property
    def _is_complete(self) -> bool:
        """Whether the last turn ended normally."""
        facts = self.facts
        return facts.stop_reason in _COMPLETE or (facts.handing_over and facts.finalized is not None)

    def _say_next(self) -> None:
        self.note(finished=False)
        self._prompt(*self.outbox.send_next())

    # --- responses of pi ---

    def _answered(self, fields: dict[str, Any]) -> list[Event]:
        own_id, data = string(fields.get("id")), mapping(fields.get("data"))
        fault = "" if fields.get("success") is True else error_words(string(fields.get("error"))) or "no reason given"
        match fields.get("command"):
            case "prompt":
                return self._prompted(own_id.removeprefix(_PROMPT), data.get("disposition"), fault)
            case "steer":
                return self._steered(own_id.removeprefix(_STEER), data.get("disposition"), fault)
            case "get_state" if not fault:
                return self._state_received(own_id, data)
            case "clear_queue" if own_id == _QUEUE or (fault and not own_id):
                return self._queue_received(data, fault)
            case "abort" if self.stays is not None and self.state is State.RUNNING:
                self.state, self._announces, self._asks_end = State.IDLE, False, True
                return []
            case _:
                return []

    def _prompted(self, message_id: str, disposition: object, fault: str) -> list[Event]:
        if self._begins != message_id or self.state is not State.STARTING:
            return []
        if fault:
            return self._refused(message_id, fault)
        if disposition == "handled":
            return self._handled(message_id)
        if disposition is None or self.facts.session_id is None:
            self._ask_state(_UNSAID if disposition is None else _STATE)
        return []

    def _refused(self, message_id: str, fault: str) -> list[Event]:
        """Handle a refused prompt: no turn begins; a refused first prompt ends the run."""
        self._begins = None
        if not self._began:
            self.note(ended=RunReason.AGENT_EXIT, error_message=fault)
            self.finish()
            return []
        return [*self.outbox.refused([message_id], one_line(fault, 400)), *self._over()]

    def _handled(self, message_id: str) -> list[Event]:
        """Handle a prompt that an extension processed: no turn begins."""
        self._begins = None
        return [*self.outbox.seen([message_id]), *self._over()]

    def _steered(self, message_id: str, disposition: object, fault: str) -> list[Event]:
        if fault:
            return self.outbox.refused([message_id], one_line(fault, 400))
        return self.outbox.seen([message_id]) if disposition == "handled" else []

    def _state_received(self, own_id: str, data: dict[str, Any]) -> list[Event]:
        self.note(session_id=string(data.get("sessionId")) or self.facts.session_id)
        is_idle = data.get("isStreaming") is not True and data.get("isCompacting") is not True
        if own_id == f"{_UNSAID}{self._asked}" and self.state is State.STARTING and is_idle:
            return self._handled(self._begins or "")  # an extension's command ran, and no turn begins
        if own_id != f"{_ENDING}{self._asked}" or self.state is not State.IDLE or not (is_idle or self._is_quiet):
            return []
        if self._announces and not self._is_quiet:
            self.finished_after = QUIET_AFTER_END
            return []
        return self._over()

    def _queue_received(self, data: dict[str, Any], fault: str) -> list[Event]:
        """Send messages again that were too late for the last turn."""
        if self.state is not State.IDLE or not self._unshown:
            return []
        if fault and not self._is_nudged:
            self._is_nudged = True
            self._prompt("", _NUDGE)
            return []
        queued = [*items(data.get("steering")), *items(data.get("followUp"))]
        self._is_nudged = False
        again = [message_id for message_id, text in self._unshown.items() if text in queued]
        self.outbox.take_back(again)
        lost = self.outbox.refused(self._unshown, "pi did not add it to its conversation")
        return [*lost, *self._over()]

    # --- dialogs of pi ---

    def _dialog(self, fields: dict[str, Any]) -> list[Event]:
        if fields.get("method") == "notify":
            text = one_line(string(fields.get("message")), 600)
            level = _LEVELS.get(string(fields.get("notifyType")), NoticeLevel.INFO)
            return [Notice(level=level, text=text)] if text else []
        question = asked(fields)
        if question is None or self.state is State.CLOSED:
            return []
        if is_unreadable(fields):
            self.respond(question.request.id, denial(UNREADABLE))
            return [Notice(level=NoticeLevel.WARNING, text=f"a call was denied: {UNREADABLE}")]
        request = question.request
        self.questions[request.id] = question
        if limit := count(fields.get("timeout")):
            self._closing[request.id] = self._clock() + limit / 1000
        return [request]

    def _withdraw(self, request_id: str) -> None:
        self._closing.pop(request_id, None)
        self._later += self.withdrawn([request_id])

    def _extension_failed(self, fields: dict[str, Any]) -> list[Event]:
        words = one_line(f"an extension of pi failed: {string(fields.get('error'))}", 600)
        return [Notice(level=NoticeLevel.WARNING, text=words)]


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(string(mapping(block).get("text")) for block in items(content))
