"""The running side of a kind of agent: how the wrapper starts the agent and reads its output.

A kind's `child` module defines `CHILD` with this interface. A wrapper loads only its run's kind, before the agent
starts, so its imports cost every run time and memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from .. import paths
from ..errors import LaunchError
from ..run.events import Event
from ..run.model import RunMeta, Verdict
from ..run.outcome import StreamFacts
from ..system.files import open_regular
from .sentence import Sentence
from .updates import Updates


class Command(Struct, frozen=True):
    """How to start an agent."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """Added to the wrapper's own environment."""
    unset: tuple[str, ...] = ()
    """Variables removed from the wrapper's environment, before `env` is added."""
    pipe: bool = False
    """Whether stdin is a pipe for the stream's replies; otherwise it is the prompt file."""


class Start(Struct, frozen=True):
    """Parameters of one start of an agent."""

    meta: RunMeta
    run_dir: str
    number: int = 1
    """Start number, from 1; each has its own prompt."""
    session_id: str | None = None
    """The conversation to continue: the previous attempt's or the continued run's. None starts a new one, with the id
    in the meta if the agent accepts one.
    """
    handed_back: int = 0
    """Number of earlier prompts that only continued the run after a user returned it."""

    spent: float = 0.0
    """Dollars spent by the run before this start."""

    @property
    def attempt(self) -> int:
        """Attempt to get a result; continuing a returned run is not another attempt."""
        return self.number - self.handed_back

    @property
    def prompt_path(self) -> str:
        return os.path.join(self.run_dir, paths.prompt_name(self.number))


class Listener(Protocol):
    """Receives messages during a run: the agent, or a user with the run open interactively."""

    @property
    def talks(self) -> bool:
        """Whether it accepts messages while it works; if not, no other member is used."""
        ...

    @property
    def is_stdin_done(self) -> bool:
        """Whether stdin may be closed once everything is written."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether its turn was interrupted and it waits for a message; `finished_after` is then None."""
        ...

    def tell(self, message_id: str, text: str) -> None:
        """Send a message to the agent, unless `is_stdin_done`. A later `feed` returns its `Message` event: delivered
        once the agent's output shows it, or refused with a reason. The run continues until the message had its turn.
        """
        ...

    def interrupt(self, *, stays: bool) -> None:
        """Make the agent end its turn. If it `stays`, it reports `Interrupted` and waits for the next message;
        otherwise it finishes. Does nothing between turns.
        """
        ...

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        """Answer the request that `feed` returned with this id; an answer that does not fit counts as DENY."""
        ...

    def denied(self, what: str) -> None:
        """Record that a request was denied, or that no user replied."""
        ...

    def close(self) -> None:
        """End the input: a waiting agent finishes as interrupted."""
        ...


class Stream(Listener, Protocol):
    """The output of one agent for one prompt. No output may make it raise.

    `AgentStream` in `_stream.py` has the shared part of most kinds.
    """

    @property
    def updates(self) -> Updates: ...

    @property
    def facts(self) -> StreamFacts:
        """Facts from its output so far; the run's result depends only on these."""
        ...

    @property
    def writing(self) -> Sentence:
        """The text the model is writing."""
        ...

    @property
    def finished_after(self) -> float | None:
        """Seconds of silence after which the agent has finished: 0 once it reported its end, None while it works."""
        ...

    @property
    def running_tools(self) -> int:
        """Tools running now; silence is then not a stall."""
        ...

    def feed(self, line: bytes) -> list[Event]:
        """Return the events of a line. Lines that match `updates` are cut, and may be several at once."""
        ...

    def replies(self) -> bytes:
        """Return new input for the agent's stdin and clear it; called at the start and after each line. The wrapper
        buffers it until the agent reads, so that neither blocks the other.
        """
        ...

    def end(self) -> list[Event]:
        """Handle the end of the output; return the events of unfinished items."""
        ...


class Child(Protocol):
    """The running side of a kind of agent."""

    def knows(self, lines: Sequence[bytes]) -> bool:
        """Whether a recording with these first lines is of this kind."""
        ...

    def command(self, start: Start) -> Command:
        """Return argv and environment of an agent. Raises LaunchError if a required file is missing."""
        ...

    def stream(self, start: Start | None = None) -> Stream:
        """Return the reader of the agent's output; without `start`, of a recording, which gets no replies."""
        ...

    def explain(self, meta: RunMeta, stderr: str) -> str:
        """Return the reason for a failure if stderr does not show it in plain words; otherwise empty."""
        ...


def prompt_of(start: Start) -> str:
    """Return the prompt, for an agent that gets it as a message and not as stdin."""
    with open(open_regular(start.prompt_path)[0], "rb") as file:
        return file.read().decode("utf-8", "replace")


def existing(path: str, hint: str) -> str:
    """Return the path of a file that the agent has to read. Raises LaunchError if it is missing.

    pi would silently use a missing file's path as the prompt.
    """
    if not os.path.isfile(path):
        raise LaunchError("a file that the agent has to read is missing", where=path, hint=hint)
    return path
