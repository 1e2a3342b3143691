"""Claude Code that is talked to: messages and interrupts by its stdin, and what it asks, which goes to people."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from ...run.events import Decision, ErrorReported, Event, Interrupted, Message
from ...run.model import MessageState, RunReason, Verdict
from ...system.files import open_regular
from ...text.plain import one_line
from .._json_lines import mapping, string
from ..child import Start
from ._requests import Asked, asked
from ._stream import ClaudeStream, warning

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from ._hook import Hook

_MOST_ASKED = 1000
"""Questions that are held; further ones are denied."""
_OWN_WORDS = "[Request interrupted"
"""How the program says in the place of the user that a turn was interrupted."""


class TalkingStream(ClaudeStream):
    """One process, and as many turns as it takes to say everything.

    A message is put behind the result of the tool that runs, or has a turn of its own; it is delivered when the program
    repeats it, which it does as it hands it to the model. What it holds at an interrupt it takes up by itself after it.
    """

    talks = True

    def __init__(
        self,
        start: Start | None = None,
        environment: dict[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with the prompt; without a `start` the stream is a recorded one."""
        super().__init__(environment, clock)
        self._is_recorded = start is None
        self.is_stdin_done = self._is_recorded
        self._told: dict[str, str] = {}
        """Messages that the program has and did not repeat yet: their ids, by those that it knows them by."""
        self._is_between_turns = False
        self._is_waiting = False
        self._interrupts: set[str] = set()
        """Those that the program has not answered."""
        self._stays: bool | None = None
        """Whether the child stays once its turn has been interrupted; None while nobody wants that."""
        self._numbers = count(1)
        self._asked: dict[str, Asked] = {}
        self._readers |= {
            "command_lifecycle": self._progress_of_message,
            "control_request": self._control_request,
            "control_response": self._control_response,
            "control_cancel_request": self._cancelled,
        }
        self._hook: Hook | None = None
        self._held: list[dict[str, Any]] | None = None
        """What is said once the hook is registered; None where nothing has to wait for that."""
        if start is not None:
            self._say_task(start)

    # --- what people say ---

    @property
    def is_waiting(self) -> bool:
        return self._is_waiting

    def tell(self, message_id: str, text: str) -> None:
        if self._stays is False or self.is_stdin_done:
            return
        self._is_waiting = False
        own_id = _new_id()
        self._told[own_id] = message_id
        # What begins with a slash would be a command of the program, as `/clear`; one that is none would not be read
        # before the next turn.
        self._say_to_model(f"Message: {text}" if text.lstrip().startswith("/") else text, uuid=own_id)

    def interrupt(self, *, stays: bool) -> None:
        if self.is_stdin_done:
            return
        if not stays and (self._held is not None or (self._is_between_turns and not self._told)):
            self._leave()
        elif not self._is_waiting:
            self._stays = stays and self._stays is not False
            self._end_turn()

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        if question := self._asked.pop(request_id, None):
            self._respond(request_id, question.response(verdict, text))

    def close(self) -> None:
        if self._is_waiting:
            self._leave()

    # --- what the program is told ---

    def _say_task(self, start: Start) -> None:
        if start.meta.permissions:
            from ._hook import Hook  # few runs have rules

            self._hook = Hook(start.meta)
            self._send(self._hook.registration)
            self._held = []
        self._say_to_model(_prompt(start))

    def _say_to_model(self, text: str, **fields: str) -> None:
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self._send({"type": "user", "message": message, **fields})

    def _end_turn(self) -> None:
        number = f"interrupt-{next(self._numbers)}"
        self._interrupts.add(number)
        self._send({"type": "control_request", "request_id": number, "request": {"subtype": "interrupt"}})

    def _respond(self, request_id: str, response: dict[str, Any]) -> None:
        answer = {"subtype": "success", "request_id": request_id, "response": response}
        self._send({"type": "control_response", "response": answer})

    def _send(self, message: dict[str, Any]) -> None:
        if self._held is None:
            self.say(msgspec.json.encode(message) + b"\n")
        else:
            self._held.append(message)

    def _leave(self) -> None:
        """Have it go: nothing more is said."""
        self._is_waiting = False
        self.finished_after = 0
        self.is_stdin_done = self.has_left = True
        if not self.facts.finished and self.facts.ended is None:
            self.note(ended=RunReason.INTERRUPTED)

    def _leave_if_all_is_said(self) -> None:
        """Finish after a turn, unless something brings another: a message, or what runs in the background."""
        if self._is_recorded or not self._is_between_turns or self._is_waiting or self._told:
            return
        if self._stays is False or not self._tasks:
            self._leave()

    # --- turns ---

    def _system(self, fields: dict[str, Any]) -> list[Event]:
        if fields.get("subtype") == "init":
            self._is_between_turns = self._is_waiting = False
            if self._stays is False:
                self._end_turn()  # the program took up a message that it still had
        return super()._system(fields)

    def _result(self, fields: dict[str, Any]) -> list[Event]:
        events = [*self._withdrawn(), *super()._result(fields)]
        if self._is_recorded:
            return events
        self._is_between_turns = True
        self.finished_after = None
        if self.facts.ended is RunReason.INTERRUPTED or not self._interrupts:
            events += self._interrupted(is_certain=self.facts.ended is RunReason.INTERRUPTED)
        self._leave_if_all_is_said()
        return events

    def _interrupted(self, *, is_certain: bool) -> list[Event]:
        """Wait for what is said next, where that was wanted; a turn that was over before needs something to wait for:
        else the child has finished.
        """
        if not self._stays:
            return []
        self._stays = None
        if not (is_certain or self._told or self._tasks):
            return []
        self._is_waiting = not self._told
        return [Interrupted()]

    def _user(self, fields: dict[str, Any]) -> list[Event]:
        if fields.get("isReplay") is True:
            if delivered := self._settled_message(string(fields.get("uuid")), MessageState.DELIVERED):
                self.turn_ended = False
            return delivered
        events = super()._user(fields)
        if self._stays is None:
            return events
        return [event for event in events if not getattr(event, "text", "").startswith(_OWN_WORDS)]

    def _progress_of_message(self, fields: dict[str, Any]) -> list[Event]:
        """Settle a message that was never repeated: the turn that had it is over."""
        own_id = string(fields.get("command_uuid"))
        match fields.get("state"):
            case "completed":
                events = self._settled_message(own_id, MessageState.DELIVERED)
            case "cancelled" | "discarded":
                events = self._settled_message(
                    own_id, MessageState.REFUSED, "the turn ended before the message was read"
                )
            case _:
                return []
        self._leave_if_all_is_said()
        return events

    def _settled_message(self, own_id: str, state: MessageState, reason: str = "") -> list[Event]:
        message_id = self._told.pop(own_id, None)
        if message_id is None:
            return []
        return [Message(id=message_id, state=state, reason=reason)]

    # --- what it asks ---

    def _control_request(self, fields: dict[str, Any]) -> list[Event]:
        request_id, wish = string(fields.get("request_id")), mapping(fields.get("request"))
        if self._hook and wish.get("subtype") == "hook_callback":
            self._respond(request_id, self._hook.answer(mapping(wish.get("input"))))
            return []
        if request_id in self._asked:
            return []  # it repeats itself to whoever comes later
        cwd = self._hook.directory_of(string(wish.get("tool_use_id"))) if self._hook else ""
        question = asked(request_id, wish, cwd)
        if question is None:
            refusal = f"unknown request {one_line(string(wish.get('subtype')), 80)}"
            answer = {"subtype": "error", "request_id": request_id, "error": refusal}
            self._send({"type": "control_response", "response": answer})
            return []
        if len(self._asked) >= _MOST_ASKED:
            self._respond(request_id, question.response(Verdict.DENY, "the request is too large"))
            return []
        self._asked[request_id] = question
        return [question.request]

    def _control_response(self, fields: dict[str, Any]) -> list[Event]:
        """Read how it answers an interrupt; what it was answered to a question it repeats."""
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
            self._stays = self._stays and None
            return [warning(f"the agent was not interrupted: {one_line(string(response.get('error')), 200)}")]
        events = self._interrupted(is_certain=False) if self._is_between_turns else []
        self._leave_if_all_is_said()
        return events

    def _registered(self, request_id: str, response: dict[str, Any]) -> list[Event]:
        """Begin, now that the rules of the run are kept to; where they are not there is no run."""
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
        self._leave()
        return [ErrorReported(message=problem)]

    def _recorded_reply(self, request_id: str, response: dict[str, Any]) -> list[Event]:
        question = self._asked.pop(request_id, None)
        if question is None:
            return []
        verdict = Verdict.ALLOW if response.get("behavior") == "allow" else Verdict.DENY
        word = one_line(string(response.get("message")), 400)
        return [Decision(request=request_id, verdict=verdict, text=word, tool_name=question.request.tool_name)]

    def _cancelled(self, fields: dict[str, Any]) -> list[Event]:
        return self._withdrawn(string(fields.get("request_id")))

    def _withdrawn(self, *request_ids: str) -> list[Event]:
        """Take back what was asked; everything, where no ids are given."""
        gone = [known for known in request_ids or tuple(self._asked) if self._asked.pop(known, None)]
        return [Decision(request=request_id, verdict=Verdict.WITHDRAWN) for request_id in gone]


def _prompt(start: Start) -> str:
    with open(open_regular(start.prompt_path)[0], "rb") as file:
        return file.read().decode("utf-8", "replace")


def _new_id() -> str:
    """Return a random UUID, as the program wants ids of messages."""
    digits = os.urandom(16).hex()
    return "-".join((digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:]))
