"""The user's changes to the queue: whether it is paused, and its order. Waiting processes read these files.

They are beside the slots of the project, in the checkout: each counts only if this user's subdeck signed it for that
path. Without them the queue is in launch order. Nothing here loads modules that a waiting wrapper does not need.
"""

from __future__ import annotations

import os

from .. import paths
from ..system import files
from ..system.directory import Directory, opened

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROJECT = "project"
"""The directory of the slots shared by all runs of the project."""
HELD = "held"
ORDER = "order"
MOST = 10_000
"""Ids read from an order."""


class QueueState:
    """Content of the files when they were read."""

    __slots__ = ("held", "order")

    def __init__(self, order: Sequence[str] = (), held: bool = False) -> None:
        self.order = order
        """Run ids, the next to start first; all other runs come after them."""
        self.held = held
        """Whether no waiting run gets a slot."""


def read_state(slots: str) -> QueueState:
    """Read the state of the queue whose slots are in this directory."""
    try:
        with opened(f"{slots}/{PROJECT}") as directory:
            held = _content(directory, slots, HELD) is not None
            order = (_content(directory, slots, ORDER) or b"").decode("ascii", "replace").split()[:MOST]
    except OSError:
        return QueueState()
    return QueueState(tuple(filter(paths.is_run_id, order)), held)


def _content(directory: Directory, slots: str, name: str) -> bytes | None:
    """Return the content of a file by the user; None if it is missing, or came with a checkout."""
    if not directory.has(name):
        return None
    from ..run.signature import content_if_signed

    try:
        return content_if_signed(_subject(slots, name), directory.read(name))
    except OSError:
        return None


def _subject(slots: str, name: str) -> str:
    return f"queue {name} {os.path.realpath(slots)}"


def hold(slots: str, held: bool) -> None:
    """Pause or resume the queue. Raises OSError, and SubdeckError without a key to sign with."""
    if held:
        _write(slots, HELD, b"")
    else:
        files.remove(os.path.join(slots, PROJECT, HELD))


def write_order(slots: str, run_ids: Iterable[str]) -> None:
    """Write the order of the runs. Raises OSError, and SubdeckError without a key to sign with."""
    _write(slots, ORDER, b"".join(f"{run_id}\n".encode() for run_id in run_ids))


def _write(slots: str, name: str, content: bytes) -> None:
    from ..run.signature import signed

    path = os.path.join(slots, PROJECT, name)
    file = signed(_subject(slots, name), content)
    files.make_private_directory(os.path.dirname(path))
    files.write_whole(path, file)


def moved(waiting: Sequence[tuple[str, str]], run_id: str, step: int) -> list[str]:
    """Return the ids of the waiting runs, given in order with their queues, after one has moved in its queue."""
    ids = [name for name, _ in waiting]
    line = dict(waiting)[run_id]
    mates = [name for name, its_line in waiting if its_line == line]
    target = mates.index(run_id) + step
    if 0 <= target < len(mates):
        index = ids.index(mates[target])
        ids.remove(run_id)
        ids.insert(index, run_id)
    return ids
