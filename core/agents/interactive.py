"""The interactive side of a kind of agent: its UI program, and reading the conversation that a user had there.

A kind's `interactive` module defines `INTERACTIVE` with this interface.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from ..run.events import Event
from ..run.outcome import StreamFacts
from .child import Command, Start


class Said(Struct, frozen=True):
    """The events added to a conversation while a user had it open."""

    events: tuple[Event, ...] = ()
    facts: StreamFacts = StreamFacts()
    """As for an agent with this output; `finished` if it ends with a whole answer."""


class Interactive(Protocol):
    """The UI program of a kind of agent."""

    def command(self, start: Start) -> Command:
        """Return argv and environment to open a run's conversation with the run's model and tools. Raises LaunchError
        if there is no conversation.
        """
        ...

    def conversation(self, start: Start) -> str | None:
        """Return the file of that conversation; None if it does not exist yet."""
        ...

    def read(self, lines: Iterable[bytes], by: str) -> Said:
        """Read lines added to that file; `by` is the author of the user messages there."""
        ...
