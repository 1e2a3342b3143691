"""Interactive Claude Code: messages and interrupts go to its stdin, its requests go to the user."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from ...run.events import Decision, ErrorReported, Event, Interrupted
from ...run.model import RunReason, Verdict
from ...text.plain import one_line
from .._conversation import Conversation, State
from .._json_lines import mapping, string
from ..child import Start, prompt_of
from ._requests import asked
from ._stream import ClaudeStream, warning

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ._hook import Hook

_MOST_ASKED = 1000
"""Maximum pending questions; further ones are denied."""
_OWN_WORDS = "[Request interrupted"
"""Start of the program's own text, in a user message, about an interrupted turn."""


class ClaudeConversation(ClaudeStream, Conversation):
    """One process, with as many turns as all messages need.

    A message follows the running tool's result, or gets its own turn. It is delivered when the program repeats it,
    which it does as it passes the message to the model. After an interrupt, the program continues with the messages it
    still holds.
    """

    def __init__(
        self,
        start: Start | None = None,
        environment: dict[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Send the prompt; without a `start`, the stream is a recording."""
        super().__init__(environment, clock)
        self._is_recorded = start is None
        self.is_stdin_done = self._is_recorded
        self._known_as: dict[str, str] = {}
        """Message ids, by the program's ids."""
        self._interrupts: set[str] = set()
        """Interrupts that the program has not answered."""
        self._numbers = count(1)
        self._readers |= {
            "command_lifecycle": self._progress_of_message,
            "control_request": self._control_request,
            "control_response": self._control_response,
            "control_cancel_request": self._cancelled,
        }
        self._hook: Hook | None = None
        self._held: list[dict[str, Any]] | None = None
        """Messages to send once the hook is registered; None if nothing waits for that."""
        if start is not None:
            self._say_task(start)

    # --- messages to the program ---

    @property
    def may_leave(self) -> bool:
        return self._held is not None or (super().may_leave and not self.outbox.sent)

    @property
    def is_busy(self) -> bool:
        """Whether another turn is coming: for a message, or from a background task."""
        return bool(self.outbox.sent) or (self.stays is not False and bool(self._tasks))

    def tell_turn(self) -> None:
        for message_id, text in self.outbox.send().items():
            own_id = _new_id()
            self._known_as[own_id] = message_id
            # A leading slash would make it a command of the program, such as `/clear`; an unknown command would wait
            # for the next turn.
            self._say_to_model(f"Message: {text}" if text.lstrip().startswith("/") else text, uuid=own_id)

    def begin_turn(self) -> None:
        self.state = State.IDLE  # until the program reports that a turn began
        self.tell_turn()

    def end_turn(self) -> None:
        number = f"interrupt-{next(self._numbers)}"
        self._interrupts.add(number)
        self._send({"type": "control_request", "request_id": number, "request": {"subtype": "interrupt"}})

    def _say_task(self, start: Start) -> None:
        if start.meta.permissions:
            from ._hook import Hook  # few runs have rules

            self._hook = Hook(start.meta)
            self._send(self._hook.registration)
            self._held = []
        self._say_to_model(prompt_of(start))

    def _say_to_model(self, text: str, **fields: str) -> None:
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self._send({"type": "user", "message": message, **fields})

    def respond(self, own_id: str, answer: dict[str, Any]) -> list[Event]:
        response = {"subtype": "success", "request_id": own_id, "response": answer}
        self._send({"type": "control_response", "response": response})
        return []

    def _send(self, message: dict[str, Any]) -> None:
        if self._held is None:
            self.say(msgspec.json.encode(message) + b"\n")
        else:
            self._held.append(message)

    # --- turns ---

    def _system(self, fields: dict[str, Any]) -> list[Event]:
        if fields.get("subtype") == "init":
            self.state = State.RUNNING
            if self.stays is False:
                self.end_turn()  # the program started on a message it still held
        return super()._system(fields)

    def _result(self, fields: dict[str, Any]) -> list[Event]:
        events = [*self.withdrawn(self.questions), *super()._result(fields)]
        if self._is_recorded:
            return events
        self.state = State.IDLE
        self.finished_after = None
        if self.facts.ended is RunReason.INTERRUPTED or not self._interrupts:
            events += self._interrupted(is_certain=self.facts.ended is RunReason.INTERRUPTED)
        self.go_on()
        return events

    def _interrupted(self, *, is_certain: bool) -> list[Event]:
        """Wait for a message after a requested interrupt; if the turn was already over, only if more is expected.
        Otherwise the agent has finished.
        """
        if not self.stays:
            return []
        self.stays = None
        if not (is_certain or self.outbox.sent or self._tasks):
            return []
        self.state = State.IDLE if self.outbox.sent else State.INTERRUPTED
        return [Interrupted()]

    def _user(self, fields: dict[str, Any]) -> list[Event]:
        if fields.get("isReplay") is True:
            if delivered := self.outbox.seen([self._id_of(fields.get("uuid"))]):
                self.turn_ended = False
            return delivered
        events = super()._user(fields)
        if self.stays is None:
            return events
        return [event for event in events if not getattr(event, "text", "").startswith(_OWN_WORDS)]

    def _progress_of_message(self, fields: dict[str, Any]) -> list[Event]:
        """Settle a message that was never repeated, because its turn is over."""
        message_id = self._id_of(fields.get("command_uuid"))
        match fields.get("state"):
            case "completed":
                events = self.outbox.seen([message_id])
            case "cancelled" | "discarded":
                events = self.outbox.refused([message_id], "the turn ended before the message was read")
            case _:
                return []
        self.go_on()
        return events

    def _id_of(self, own_id: object) -> str:
        """Return the message id for a program's id; empty if unknown."""
        return self._known_as.get(string(own_id), "")

    # --- requests ---

    def _control_request(self, fields: dict[str, Any]) -> list[Event]:
        request_id, wish = string(fields.get("request_id")), mapping(fields.get("request"))
        if self._hook and wish.get("subtype") == "hook_callback":
            return self.respond(request_id, self._hook.answer(mapping(wish.get("input"))))
        if request_id in self.questions:
            return []  # repeated for clients that connect later
        cwd = self._hook.directory_of(string(wish.get("tool_use_id"))) if self._hook else ""
        question = asked(request_id, wish, cwd)
        if question is None:
            refusal = f"unknown request {one_line(string(wish.get('subtype')), 80)}"
            answer = {"subtype": "error", "request_id": request_id, "error": refusal}
            self._send({"type": "control_response", "response": answer})
            return []
        if len(self.questions) >= _MOST_ASKED:
            return self.respond(request_id, question.answer(Verdict.DENY, "the request is too large"))
        self.questions[request_id] = question
        return [question.request]

    def _control_response(self, fields: dict[str, Any]) -> list[Event]:
        """Handle the answer to an interrupt; the program also repeats answers that it received."""
        response = mapping(fields.get("response"))
        request_id = string(response.get("request_id"))
        if self._is_recorded:
            return self._recorded_reply(request_id, mapping(response.get("response")))
        if self._held is not None:
            return self._registered(request_id, response)
        if request_id not in self._interrupts:
            return []
        self._interrupts.discard(request_id)
        if response.get("subtype") != "success":
            self.stays = self.stays and None
            return [warning(f"the agent was not interrupted: {one_line(string(response.get('error')), 200)}")]
        events = self._interrupted(is_certain=False) if self.state in (State.IDLE, State.INTERRUPTED) else []
        self.go_on()
        return events

    def _registered(self, request_id: str, response: dict[str, Any]) -> list[Event]:
        """Begin the task once the run's rules are enforced; otherwise fail the run."""
        if self._hook is None or request_id != self._hook.registration["request_id"]:
            return []
        held, self._held = self._held or [], None
        if response.get("subtype") == "success":
            for message in held:
                self._send(message)
            return []
        words = one_line(string(response.get("error")), 200) or "no reason given"
        problem = f"Claude Code cannot enforce the rules of this run: {words}"
        self.note(ended=RunReason.START_FAILED, error_message=problem)
        self.leave()
        return [ErrorReported(message=problem)]

    def _recorded_reply(self, request_id: str, response: dict[str, Any]) -> list[Event]:
        question = self.questions.pop(request_id, None)
        if question is None:
            return []
        verdict = Verdict.ALLOW if response.get("behavior") == "allow" else Verdict.DENY
        word = one_line(string(response.get("message")), 400)
        return [Decision(request=request_id, verdict=verdict, text=word, tool_name=question.request.tool_name)]

    def _cancelled(self, fields: dict[str, Any]) -> list[Event]:
        return self.withdrawn([string(fields.get("request_id"))])


def _new_id() -> str:
    """Return a random UUID, the program's format for message ids."""
    digits = os.urandom(16).hex()
    return "-".join((digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:]))
