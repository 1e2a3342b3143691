"""What the wrapper asks of a kind of agent: how its child is started, and how what it writes is read.

A kind's `child` module has a `CHILD` that does this. A wrapper loads it for the kind of its run alone, before the
child is started: what is imported there is paid for by each run, in time and in memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from .. import paths
from ..errors import LaunchError
from ..run.events import Event
from ..run.model import RunMeta, Verdict
from ..run.outcome import StreamFacts
from ..system.files import open_regular
from ..text.decoding import decode
from .sentence import Sentence
from .updates import Updates


class Command(Struct, frozen=True):
    """How a child is started."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """Added to what the wrapper itself got."""
    unset: tuple[str, ...] = ()
    """Variables the child must not see even if the wrapper has them; removed before `env` is added."""
    pipe: bool = False
    """Whether the child's stdin is a pipe, on which the stream says what is written; else it is the prompt file."""


class Start(Struct, frozen=True):
    """What a child is started for."""

    meta: RunMeta
    run_dir: str
    number: int = 1
    """Of the attempt; each has a prompt of its own."""
    session_id: str | None = None
    """Of the conversation that goes on: that of the attempt before, or of the run that this one continues. None begins
    one, by the id of the meta where the agent takes one."""
    handed_back: int = 0
    """How many of the prompts before this one's are what the run went on with once a person had handed it back."""

    spent: float = 0.0
    """Dollars that the run had spent before."""

    @property
    def attempt(self) -> int:
        """Which of the tries to get a result it is; to go on is no other try."""
        return self.number - self.handed_back

    @property
    def prompt_path(self) -> str:
        return os.path.join(self.run_dir, paths.prompt_name(self.number))


class Listener(Protocol):
    """Whom something can be said to while a run goes on: a child, or a person who has taken the run over."""

    @property
    def talks(self) -> bool:
        """Whether something can be said to the child while it works; without it nothing else here is asked for."""
        ...

    @property
    def is_stdin_done(self) -> bool:
        """Whether the child's stdin may be closed once all is written."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether its turn was interrupted and it waits for what is said next; `finished_after` is None then."""
        ...

    def tell(self, message_id: str, text: str) -> None:
        """Say a message to the child, not after `is_stdin_done`. A later `feed` returns the `Message` that says whether
        it was delivered: the child's own output shows it; or refused, and why. The run goes on until it had its turn.
        """
        ...

    def interrupt(self, *, stays: bool) -> None:
        """Have the child end its turn by its own means. One that `stays` then waits for what is said next, an
        `Interrupted` says so; any other finishes. Without a turn there is nothing to end.
        """
        ...

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        """Answer what the child asks, by the id of the `Request` that `feed` returned; DENY, where it does not fit."""
        ...

    def denied(self, what: str) -> None:
        """Take it that a request of the child was denied, or that nobody replied to it."""
        ...

    def close(self) -> None:
        """Say that nothing more will be said: a child that waits finishes as interrupted."""
        ...


class Stream(Listener, Protocol):
    """The output of one child, one prompt long. Nothing that a child writes may make it raise.

    `AgentStream` in `stream.py` has what most kinds share.
    """

    @property
    def updates(self) -> Updates: ...

    @property
    def facts(self) -> StreamFacts:
        """What it has said so far; how the run ended is decided from nothing else."""
        ...

    @property
    def writing(self) -> Sentence:
        """What the model is writing."""
        ...

    @property
    def finished_after(self) -> float | None:
        """Seconds without another line after which the child has finished: 0 once it said so, None while it works."""
        ...

    @property
    def running_tools(self) -> int:
        """While one runs, silence is no stall."""
        ...

    def feed(self, line: bytes) -> list[Event]:
        """Return the events of a line. Lines that `updates` knows are cut, and may come several at a time."""
        ...

    def replies(self) -> bytes:
        """Return, once, what is to be written to the child's stdin now; asked for at the start and after each line.

        The wrapper keeps it until the child reads, so that neither waits for the other.
        """
        ...

    def end(self) -> list[Event]:
        """Take the end of the output; return the events of what was open then."""
        ...


class Child(Protocol):
    """The running side of a kind of agent."""

    def knows(self, lines: Sequence[bytes]) -> bool:
        """Tell whether a recording that begins with these lines is one of this kind's."""
        ...

    def command(self, start: Start) -> Command:
        """Return argv and environment of a child; raises LaunchError when a file that it needs is missing."""
        ...

    def stream(self, start: Start | None = None) -> Stream:
        """Return what reads the child's output; None for a recorded one, to which nothing is said."""
        ...

    def explain(self, meta: RunMeta, stderr: str) -> str:
        """Say why it ended where its stderr does not do so in words for a person; empty where those will do."""
        ...


def prompt_of(start: Start) -> str:
    """Return what the child is told first, where that is said and not its stdin."""
    with open(open_regular(start.prompt_path)[0], "rb") as file:
        return file.read().decode("utf-8", "replace")


def own_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the settings add for this agent's child alone."""
    return decode(environment.get(paths.AGENT_ENVIRONMENT) or "{}", dict[str, str])


def child_environment(meta: RunMeta) -> dict[str, str]:
    """Return the variables by which a child, and what it starts, is known as one."""
    return {"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": meta.run_id}


def existing(path: str, hint: str) -> str:
    """Return the path of a file that the agent has to read. Raises LaunchError where it is missing.

    pi takes such a path for the prompt itself, and says nothing.
    """
    if not os.path.isfile(path):
        raise LaunchError("a file that the agent has to read is missing", where=path, hint=hint)
    return path
