"""A conversation with an agent while its run goes on: its turns, what it is told, and what it asks.

There is one state machine for all kinds. A kind says how a message is written, how a turn is begun and ended, and which
of its events show that a message was read.
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
    """A turn was asked for and has not begun; at first that of the task."""
    RUNNING = "running"
    IDLE = "idle"
    """The turn is over; nothing that was said is left, or a kind waits for its agent to say what comes next."""
    INTERRUPTED = "interrupted"
    """A person ended the turn: nothing comes before the next message."""
    CLOSED = "closed"
    """The agent was told to go: nothing more is said."""


class Outbox:
    """Messages to the agent by their ids, in their order: unsent, then sent, then gone as they are seen or refused.

    The task may be one of them, by the empty id; no event tells of it.
    """

    def __init__(self, **unsent: str) -> None:
        self.unsent: dict[str, str] = unsent
        self.sent: dict[str, str] = {}
        """Those that the agent has not shown yet."""

    def put(self, message_id: str, text: str) -> None:
        self.unsent[message_id] = text

    def send(self) -> dict[str, str]:
        """Take all as sent that is not yet; return it."""
        sending, self.unsent = self.unsent, {}
        self.sent |= sending
        return sending

    def send_next(self) -> tuple[str, str]:
        """Take the first as sent; return its id and text."""
        message_id = next(iter(self.unsent))
        text = self.sent[message_id] = self.unsent.pop(message_id)
        return message_id, text

    def take_back(self, message_ids: Iterable[str]) -> None:
        """Put what was sent before what is not: the agent has forgotten it, or did not take it."""
        self.unsent = {known: self.sent.pop(known) for known in tuple(message_ids) if known in self.sent} | self.unsent

    def seen(self, message_ids: Iterable[str]) -> list[Event]:
        """Take what was sent as read by the model."""
        return self._settled(message_ids, MessageState.DELIVERED)

    def refused(self, message_ids: Iterable[str], why: str) -> list[Event]:
        return self._settled(message_ids, MessageState.REFUSED, why)

    def _settled(self, message_ids: Iterable[str], state: MessageState, why: str = "") -> list[Event]:
        gone = [message_id for message_id in tuple(message_ids) if self.sent.pop(message_id, None) is not None]
        return [Message(id=message_id, state=state, reason=why) for message_id in gone if message_id]


class Conversation(AgentStream):
    """Mixed into the stream of a kind, behind it: as many turns as it takes to say everything."""

    talks = True

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.state = State.STARTING
        self.outbox = Outbox()
        self.stays: bool | None = None
        """Whether the agent stays once its turn has been interrupted; None while nobody wants that."""
        self.questions: dict[str, Question] = {}
        """What it asks and is not answered yet, by the ids that requests have here."""

    # --- what people say: see `Listener` ---

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

    # --- what a kind does its own way ---

    @property
    def may_leave(self) -> bool:
        """Whether it can be told to go without ending a turn before."""
        return self.state in (State.IDLE, State.INTERRUPTED)

    @property
    def is_busy(self) -> bool:
        """Whether something is still to come although the turn is over."""
        return False

    def tell_turn(self) -> None:
        """Have the turn that runs, or is about to, read what is unsent; or leave that for the next one."""
        raise NotImplementedError

    def begin_turn(self) -> None:
        """Begin a turn with something that is unsent, or leave that for later; set the state to what it is in then."""
        raise NotImplementedError

    def end_turn(self) -> None:
        """Have the agent end its turn, if it has one; perhaps once more, because it is to go now and not to stay."""
        raise NotImplementedError

    def answer(self, question: Question, verdict: Verdict, text: str) -> None:
        own_id = question.request.id if question.own_id is None else question.own_id
        self.respond(own_id, question.answer(verdict, text))

    def respond(self, own_id: Any, answer: Any) -> list[Event]:
        """Write the answer to a request; return what is to be told of that, mostly nothing."""
        raise NotImplementedError

    # --- what a kind calls ---

    def go_on(self) -> None:
        """Say what can be said now. Where a turn is over and nothing is left to say or to come, the run is, too."""
        if self.state in (State.STARTING, State.RUNNING):
            if self.outbox.unsent:
                self.tell_turn()
        elif self.state is not State.CLOSED:
            if self.outbox.unsent:
                self.begin_turn()
            elif self.state is State.IDLE and not self.is_busy:
                self.leave()

    def turn_over(self, *, is_interrupted: bool) -> list[Event]:
        """Take the end of a turn: it is the run's, unless something is left to say, or waited for."""
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
        """Have the agent go; a turn that is not finished was interrupted."""
        self.finish()
        if not self.facts.finished and self.facts.ended is None:
            self.note(ended=RunReason.INTERRUPTED)

    def finish(self) -> None:
        """Have the agent go: nothing more is said."""
        self.state = State.CLOSED
        self.finished_after = 0
        self.is_stdin_done = self.has_left = True

    def withdrawn(self, request_ids: Iterable[str]) -> list[Event]:
        """Take back what the agent asked."""
        gone = [known for known in tuple(request_ids) if self.questions.pop(known, None) is not None]
        return [Decision(request=request_id, verdict=Verdict.WITHDRAWN) for request_id in gone]
