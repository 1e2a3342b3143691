"""What was deleted last and how it comes back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deletion:
    what: str
    """Said when it came back: `repo-scout 7f3a9c`, `3 runs`."""
    restore: Callable[[], Coroutine[None, None, None]]
    """Brings it back; raises a SubdeckError or an OSError when it cannot."""


class Undo:
    """Deletions of this session of the app, the last one first out."""

    def __init__(self) -> None:
        self._deletions: list[Deletion] = []

    def __bool__(self) -> bool:
        return bool(self._deletions)

    def push(self, deletion: Deletion) -> None:
        self._deletions.append(deletion)

    def pop(self) -> Deletion:
        """Raises IndexError when nothing was deleted."""
        return self._deletions.pop()
