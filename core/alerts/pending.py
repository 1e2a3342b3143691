"""Whether alerts wait for a sender: a look that every command can afford, so little is imported here."""

from __future__ import annotations

from .. import paths
from ..system import files

QUEUE, SENDING = "queue", "sending"


def directory(*names: str) -> str:
    """Return a path in the spool; without names the spool itself."""
    return paths.state_file("notify", *names)


def pending() -> set[str]:
    """Return the names of the alerts and deliveries that a sender deals with."""
    found = (name for place in (QUEUE, SENDING) for name in files.names(directory(place)))
    return {name for name in found if not name.startswith(".")}
