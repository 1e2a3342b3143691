"""What an operator did to the queue: it is held, or runs were moved in it. Files that those who wait look at.

They lie beside the slots of the project. Without them the queue is in the order of launches and nobody looks further.
Nothing here loads what a wrapper that waits does without.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from .. import paths
from ..system import files
from ..system.directory import opened

PROJECT = "project"
"""The directory of the slots that all runs of the project share."""
HELD = "held"
ORDER = "order"
MOST = 10_000
"""Runs of an order that are read."""


class QueueState:
    """What the files said when they were read."""

    __slots__ = ("held", "order")

    def __init__(self, order: Sequence[str] = (), held: bool = False) -> None:
        self.order = order
        """Ids of runs, those that go first at the beginning; who is not among them goes after them."""
        self.held = held
        """Whether nobody who waits for a slot gets one."""


def read_state(slots: str) -> QueueState:
    """Read what holds in the queue whose slots are in this directory."""
    try:
        with opened(f"{slots}/{PROJECT}") as directory:
            held = directory.has(HELD)
            order = directory.read(ORDER).decode("ascii", "replace").split()[:MOST] if directory.has(ORDER) else ()
    except OSError:
        return QueueState()
    return QueueState(tuple(filter(paths.is_run_id, order)), held)


def hold(slots: str, held: bool) -> None:
    """Keep all that wait from starting, or let them. Raises OSError."""
    path = os.path.join(slots, PROJECT, HELD)
    if not held:
        files.remove(path)
        return
    files.make_private_directory(os.path.dirname(path))
    files.write_whole(path, b"")


def write_order(slots: str, run_ids: Iterable[str]) -> None:
    """Write down in which order runs go. Raises OSError."""
    path = os.path.join(slots, PROJECT, ORDER)
    files.make_private_directory(os.path.dirname(path))
    files.write_whole(path, b"".join(f"{run_id}\n".encode() for run_id in run_ids))


def moved(waiting: Sequence[tuple[str, str]], run_id: str, step: int) -> list[str]:
    """Return the ids of those who wait, given with their queues in their turn, after one has moved in its queue."""
    ids = [name for name, _ in waiting]
    line = dict(waiting)[run_id]
    mates = [name for name, its_line in waiting if its_line == line]
    target = mates.index(run_id) + step
    if 0 <= target < len(mates):
        place = ids.index(mates[target])
        ids.remove(run_id)
        ids.insert(place, run_id)
    return ids
