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
    names = (name for subdirectory in (QUEUE, SENDING) for name in files.names(directory(subdirectory)))
    return {name for name in names if not name.startswith(".")}
