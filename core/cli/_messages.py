"""Send messages to agents, and report the outcome of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from ..engine import Engine
from ..errors import SubdeckError
from ..project.talk import Outcome, Sent
from ..run.model import MessageState
from ..text.plain import one_line
from ._command import Document
from .output import NOTHING_STARTED, TIMED_OUT, Note, Output, Piece, error_fields, note

REFUSED, LATE = 1, 3
"""Exit codes; 0 is for delivered messages."""


class Message(Document, frozen=True):
    """A sent message."""

    run_id: str
    id: str
    state: MessageState | Literal["sent"]
    """`sent` until it is delivered, refused or too late."""
    reason: str
    """Why it was refused or too late."""


class Refusal(Document, frozen=True):
    """A message that was not sent."""

    run_id: str
    code: str
    """Of the error; see errors.md."""
    what: str
    where: str
    hint: str


class Messages(Document, frozen=True):
    """The messages of one command."""

    sent: tuple[Message, ...]
    refused: tuple[Refusal, ...]


def send_each(
    engine: Engine,
    run_ids: Sequence[str],
    send_to: Callable[[str], Sent],
    wait: bool,
    timeout: float | None,
    *,
    done: str = "",
) -> Output[Messages]:
    """Send a message to each run with `send_to`. `done` is the text for a delivered one."""
    sent: list[Sent] = []
    refused: dict[str, SubdeckError] = {}
    for run_id in run_ids:
        try:
            sent.append(send_to(run_id))
        except SubdeckError as error:
            if len(run_ids) == 1:
                raise
            refused[run_id] = error
    outcomes: Sequence[Outcome | None] = [None] * len(sent)
    if wait and sent:
        try:
            outcomes = engine.receptions(sent, timeout=timeout)
        except KeyboardInterrupt:
            note("stopped waiting; the message stays sent")
            raise

    def document() -> Messages:
        refusals = (Refusal(run_id, **error_fields(error)) for run_id, error in refused.items())
        return Messages(tuple(map(_message, sent, outcomes)), tuple(refusals))

    def text() -> Iterator[Piece]:
        for message, outcome in zip(sent, outcomes, strict=True):
            yield _outcome_line(message, outcome, done=done, waited=timeout if wait else None)
        for run_id, error in refused.items():
            yield Note(f"{run_id[-6:]} not sent: {one_line(error.what)}")
            if error.hint:
                yield Note(f"  hint: {one_line(error.hint)}")

    code = _exit_code(outcomes if wait else (), refused) if sent else NOTHING_STARTED
    return Output(document, text(), code, is_done=True)


def _exit_code(outcomes: Sequence[Outcome | None], refused: dict[str, SubdeckError]) -> int:
    states = {outcome.state if outcome else None for outcome in outcomes}
    if refused or MessageState.REFUSED in states:
        return REFUSED
    if MessageState.LATE in states:
        return LATE
    return TIMED_OUT if states & {None, MessageState.ACCEPTED} else 0


def _message(sent: Sent, outcome: Outcome | None) -> Message:
    return Message(sent.run_id, sent.id, outcome.state if outcome else "sent", outcome.reason if outcome else "")


def _outcome_line(sent: Sent, outcome: Outcome | None, *, done: str, waited: float | None) -> str:
    name = sent.run_id[-6:]
    state = outcome.state if outcome else None
    if state is MessageState.DELIVERED:
        return done or f"{name} {'interrupted' if sent.kind == 'interrupt' else 'delivered'}"
    if outcome and state in (MessageState.REFUSED, MessageState.LATE):
        word = "refused" if state is MessageState.REFUSED else "too late"
        return f"{name} {word}: {one_line(outcome.reason) or 'no reason was given'}"
    if waited is None:
        return f"{name} {'is being interrupted' if sent.kind == 'interrupt' else 'sent'}"
    return f"{name} not {'accepted' if outcome is None else 'delivered'} within {waited:g} s; it stays sent"
