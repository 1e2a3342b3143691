"""What the wrapper asks of a kind of agent where a person takes over: its program for people, and what was said there.

A kind's `interactive` module has an `INTERACTIVE` that does this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from ..run.events import Event
from ..run.outcome import StreamFacts
from .child import Command, Start


class Said(Struct, frozen=True):
    """What was added to a conversation while a person had it."""

    events: tuple[Event, ...] = ()
    facts: StreamFacts = StreamFacts()
    """As of a child that said all this; `finished` where the last word is a whole answer."""


class Interactive(Protocol):
    """The program for people of a kind of agent."""

    def command(self, start: Start) -> Command:
        """Return argv and environment by which it opens the conversation of a run, with the run's model and tools.

        Raises LaunchError where there is no conversation to open.
        """
        ...

    def conversation(self, start: Start) -> str | None:
        """Return the file of that conversation; None where there is none yet."""
        ...

    def read(self, lines: Iterable[bytes], by: str) -> Said:
        """Read lines that were added to that file; `by` is who said what a user says there."""
        ...
