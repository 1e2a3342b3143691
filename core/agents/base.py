"""What an agent, a child program, has to offer the engine and the wrapper."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:  # a launch needs the kinds alone
    from ..run.events import Event
    from ..run.model import RunMeta
    from ..run.outcome import StreamFacts


class AgentKind(StrEnum):
    """Which protocol a child program speaks."""

    PI = "pi"
    OFFLINE = "offline"
    """The reader that comes with subdeck and uses no model."""

    @classmethod
    def of(cls, agent: str) -> AgentKind:
        """Return the kind of an agent by its name; one that the settings name speaks as pi does."""
        return cls.OFFLINE if agent == cls.OFFLINE else cls.PI


class Command(Struct, frozen=True):
    """How a child is started; its stdin is always the prompt file."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """Added to what the wrapper itself got."""
    unset: tuple[str, ...] = ()
    """Variables the child must not see even if the wrapper has them; removed before `env` is added."""


class Open(Struct, frozen=True, tag=True):
    """The child is still at work."""


class Settling(Struct, frozen=True, tag=True):
    """The child has probably finished; it is believed after this many seconds without another line."""

    seconds: float


class Settled(Struct, frozen=True, tag=True):
    """The child has said that it finished; what it does now is only going away."""


Completion = Open | Settling | Settled


class ChildStream(Protocol):
    """Reads a child's stdout, line by line, and remembers what the outcome needs."""

    @property
    def update_prefixes(self) -> tuple[bytes, ...]:
        """Lines that begin so repeat what a later line says whole: only their first `UPDATE_HEAD` bytes are looked at
        and they are not kept in `stdout.log`.
        """
        ...

    def feed(self, line: bytes) -> Iterable[Event]:
        """Take one whole line without its newline; return the events in it (with `seq` 0)."""
        ...

    def feed_update(self, head: bytes) -> None:
        """Take the beginning of a line with one of `update_prefixes`."""
        ...

    @property
    def sentence(self) -> str:
        """The assistant text being written, at most its last 2048 UTF-8 bytes; empty between messages."""
        ...

    @property
    def running_tools(self) -> int:
        """Tool calls that have started and not ended."""
        ...

    @property
    def completion(self) -> Completion: ...

    @property
    def facts(self) -> StreamFacts: ...


UPDATE_HEAD = 4096
"""Bytes."""


class AgentProgram(Protocol):
    """What the wrapper needs of an agent."""

    def command(self, meta: RunMeta, run_dir: str, attempt: int) -> Command: ...

    def stream(self) -> ChildStream: ...
