"""What an agent, a child program, has to offer the engine and the wrapper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import Struct

from ..run.events import Event, UsageReported
from ..run.model import RunMeta, Usage


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


class StreamFacts(Struct, frozen=True):
    """What the child's stream has said so far; what `outcome.decide` decides from."""

    finished: bool = False
    """A positive terminal event was seen, and nothing after it took it back."""
    final_text: str | None = None
    """Last assistant message with non-blank text."""
    stop_reason: str | None = None
    """Of the last assistant message."""
    error_message: str | None = None
    """Of the last assistant message, when it ended in an error."""
    usage: Usage = Usage()
    model: str = ""
    """`provider/id` as the child reports it."""
    session_id: str | None = None
    finalized: dict[str, Any] | None = None
    """What the child handed to its last successful `subagent_finalize` call."""
    handing_over: bool = False
    """The last assistant message calls nothing but `subagent_finalize`: no other turn follows, unless it is refused."""
    unreadable: int = 0
    """Lines so far that were no events."""


UNCOUNTED_STOPS = frozenset({"error", "compaction"})
"""Stop reasons of messages that are paid for but are no turn: a failed try, a summary."""


def add_usage(total: Usage, event: UsageReported) -> Usage:
    """Add one assistant message to a run's sums; whoever folds events counts turns as the wrapper does."""
    return Usage(
        input=total.input + event.input,
        output=total.output + event.output,
        cache_read=total.cache_read + event.cache_read,
        cache_write=total.cache_write + event.cache_write,
        cost=total.cost + event.cost,
        turns=total.turns + (event.stop_reason not in UNCOUNTED_STOPS),
        tool_uses=total.tool_uses,
    )


class ChildStream(Protocol):
    """Reads a child's stdout, line by line, and remembers what the outcome needs."""

    @property
    def update_prefixes(self) -> tuple[bytes, ...]:
        """Lines that begin so repeat what a later line says whole: only their first `UPDATE_HEAD` bytes are looked at
        and they are not kept in `stdout.log`."""
        ...

    def feed(self, line: bytes) -> Iterable[Event]:
        """Take one whole line without its newline; answer the events in it (with `seq` 0)."""
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
    """The light half of an agent, all that the wrapper needs."""

    name: str

    def command(self, meta: RunMeta, run_dir: str, attempt: int) -> Command: ...

    def stream(self) -> ChildStream: ...
