"""A conversation with an agent during its run: turns, messages, and the agent's requests.

All kinds share one state machine. A kind defines how to write a message, how to begin and end a turn, and which of its
events show that a message was read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from ..run.events import Decision, Event, Interrupted, Message
from ..run.model import MessageState, RunReason, Verdict
from ._stream import AgentStream
from .question import Question


class State(Enum):
    STARTING = "starting"
    """A turn was requested and has not begun; initially the task's turn."""
    RUNNING = "running"
    IDLE = "idle"
    """The turn is over; no message is left to send, or the kind waits for the agent to start the next turn."""
    INTERRUPTED = "interrupted"
    """A user interrupted the turn; the next turn needs a message."""
    CLOSED = "closed"
    """The agent was asked to exit; nothing more is sent."""


class Outbox:
    """Messages to the agent by id, in order: unsent, then sent, then removed once they are seen or refused.

    The task may be among them, with an empty id; it causes no event.
    """

    def __init__(self, **unsent: str) -> None:
        self.unsent: dict[str, str] = unsent
        self.sent: dict[str, str] = {}
        """Messages that the agent has not shown yet."""

    def put(self, message_id: str, text: str) -> None:
        self.unsent[message_id] = text

    def send(self) -> dict[str, str]:
        """Mark all unsent messages as sent and return them."""
        sending, self.unsent = self.unsent, {}
        self.sent |= sending
        return sending

    def send_next(self) -> tuple[str, str]:
        """Mark the first message as sent; return its id and text."""
        message_id = next(iter(self.unsent))
        text = self.sent[message_id] = self.unsent.pop(message_id)
        return message_id, text

    def take_back(self, message_ids: Iterable[str]) -> None:
        """Move sent messages before the unsent ones, because the agent forgot or rejected them."""
        self.unsent = {key: self.sent.pop(key) for key in tuple(message_ids) if key in self.sent} | self.unsent

    def seen(self, message_ids: Iterable[str]) -> list[Event]:
        """Mark sent messages as read by the model."""
        return self._settled(message_ids, MessageState.DELIVERED)

    def refused(self, message_ids: Iterable[str], why: str) -> list[Event]:
        return self._settled(message_ids, MessageState.REFUSED, why)

    def _settled(self, message_ids: Iterable[str], state: MessageState, why: str = "") -> list[Event]:
        gone = [message_id for message_id in tuple(message_ids) if self.sent.pop(message_id, None) is not None]
        return [Message(id=message_id, state=state, reason=why) for message_id in gone if message_id]


class Conversation(AgentStream):
    """Mixin behind a kind's stream: as many turns as all messages need."""

    talks = True

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.state = State.STARTING
        self.outbox = Outbox()
        self.stays: bool | None = None
        """Whether the agent keeps running after its interrupted turn; None: no interrupt is pending."""
        self.questions: dict[str, Question] = {}
        """Unanswered questions of the agent, by the ids that their requests have in subdeck."""

    # --- user input: see `Listener` ---

    @property
    def is_waiting(self) -> bool:
        return self.state is State.INTERRUPTED

    def tell(self, message_id: str, text: str) -> None:
        if self.stays is not False and not self.is_stdin_done:
            self.outbox.put(message_id, text)
            self.go_on()

    def interrupt(self, *, stays: bool) -> None:
        if self.is_stdin_done:
            return
        if not stays and self.may_leave:
            self.leave()
        elif self.state is not State.INTERRUPTED:
            self.stays = stays and self.stays is not False
            self.end_turn()

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        question = self.questions.pop(request_id, None)
        if question is not None:
            self.answer(question, verdict, text)

    def close(self) -> None:
        if self.state is State.INTERRUPTED:
            self.leave()

    # --- for a kind to implement ---

    @property
    def may_leave(self) -> bool:
        """Whether the agent can exit without first ending a turn."""
        return self.state in (State.IDLE, State.INTERRUPTED)

    @property
    def is_busy(self) -> bool:
        """Whether more output is expected although the turn is over."""
        return False

    def tell_turn(self) -> None:
        """Send unsent messages to the current or starting turn, or keep them for the next one."""
        raise NotImplementedError

    def begin_turn(self) -> None:
        """Begin a turn with an unsent message, or postpone it; update the state."""
        raise NotImplementedError

    def end_turn(self) -> None:
        """Make the agent end its turn, if any; can be called again if the agent must now exit."""
        raise NotImplementedError

    def answer(self, question: Question, verdict: Verdict, text: str) -> None:
        own_id = question.request.id if question.own_id is None else question.own_id
        self.respond(own_id, question.answer(verdict, text))

    def respond(self, own_id: Any, answer: Any) -> list[Event]:
        """Write the answer to a request; return its events, usually none."""
        raise NotImplementedError

    # --- for a kind to call ---

    def go_on(self) -> None:
        """Send messages if the state allows it. After a turn, end the run if no message is left or expected."""
        if self.state in (State.STARTING, State.RUNNING):
            if self.outbox.unsent:
                self.tell_turn()
        elif self.state is not State.CLOSED:
            if self.outbox.unsent:
                self.begin_turn()
            elif self.state is State.IDLE and not self.is_busy:
                self.leave()

    def turn_over(self, *, is_interrupted: bool) -> list[Event]:
        """Handle the end of a turn: it ends the run, unless messages are left or the agent is waiting."""
        stays, self.stays = self.stays, None
        self.state = State.IDLE
        if stays is False:
            self.leave()
            return []
        self.finished_after = None
        events: list[Event] = []
        if stays and is_interrupted:
            self.state = State.INTERRUPTED
            events.append(Interrupted())
        self.go_on()
        return events

    def leave(self) -> None:
        """Make the agent exit; an unfinished turn counts as interrupted."""
        self.finish()
        if not self.facts.finished and self.facts.ended is None:
            self.note(ended=RunReason.INTERRUPTED)

    def finish(self) -> None:
        """Make the agent exit; nothing more is sent."""
        self.state = State.CLOSED
        self.finished_after = 0
        self.is_stdin_done = self.has_left = True

    def withdrawn(self, request_ids: Iterable[str]) -> list[Event]:
        """Withdraw requests of the agent."""
        gone = [request_id for request_id in tuple(request_ids) if self.questions.pop(request_id, None) is not None]
        return [Decision(request=request_id, verdict=Verdict.WITHDRAWN) for request_id in gone]
