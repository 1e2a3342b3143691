"""Decks that have the user's attention: each keeps a locked file while it is open.

The kernel shows whether the deck still exists. A deck that does not know whether its terminal has the focus counts as
absent. Annotations are evaluated here, as in `run.model`.
"""

import os

import msgspec
from msgspec import Struct

from ..system import files
from ..system.record import read_record
from .alert import Alert
from .pending import directory

DECKS = "decks"
_COMING = ".coming-"
"""Name prefix of a file that is not locked yet."""


class Deck(Struct, frozen=True):
    project: str
    """Root of the project that it shows."""
    runs: tuple[str, ...] = ()
    """Ids, or their unambiguous beginnings, of the only runs that it shows; empty for all of the project."""
    has_focus: bool = False

    def shows(self, alert: Alert) -> bool:
        """Return whether the deck shows an alert's run, or its budget."""
        if alert.project and alert.project != self.project:
            return False
        return not (alert.run_id and self.runs) or any(_names(run, alert.run_id) for run in self.runs)


def _names(run: str, run_id: str) -> bool:
    return run_id.startswith(run) or run_id[-6:].startswith(run)


class Presence:
    """The file of a deck of this process."""

    def __init__(self, deck: Deck) -> None:
        """Create the file. Raises OSError."""
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        files.make_private_directory(directory(DECKS))
        coming, self._path = directory(DECKS, _COMING + name), directory(DECKS, name)
        self._descriptor = files.open_private(coming, os.O_RDWR)
        try:
            files.lock(self._descriptor)
            self.show(deck)
            files.rename(coming, self._path)
        except OSError:
            os.close(self._descriptor)
            raise

    def show(self, deck: Deck) -> None:
        """Record a change. Raises OSError."""
        content = msgspec.json.encode(deck)
        os.pwrite(self._descriptor, content, 0)
        os.ftruncate(self._descriptor, len(content))

    def close(self) -> None:
        files.remove(self._path)
        os.close(self._descriptor)


def decks() -> list[Deck]:
    """Return the open decks; files of killed ones are removed."""
    open_decks: list[Deck] = []
    for name in files.names(directory(DECKS)):
        path = directory(DECKS, name)
        try:
            descriptor = files.open_file(path, os.O_RDWR)
        except OSError:
            continue  # it was closed
        try:
            if files.try_lock(descriptor, shared=True):
                if not name.startswith(_COMING):
                    files.remove(path)
            elif deck := read_record(
                path, Deck
            ):  # one that changes at this moment cannot be read, and counts as absent
                open_decks.append(deck)
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return open_decks
