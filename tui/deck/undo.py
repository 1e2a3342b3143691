"""What was deleted last and how it comes back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.errors import RunBusy

if TYPE_CHECKING:
    from ..feed.bridge import Bridge


class Deletion(Struct, frozen=True):
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
        """Take the last deletion; raise IndexError when nothing was deleted."""
        return self._deletions.pop()


def deletion_of(bridge: Bridge, select: Callable[[str], object], what: str, run_ids: tuple[str, ...]) -> Deletion:
    """Return the deletion of these runs; `what` names them, `select` puts the cursor on the first that is back."""

    async def restore() -> None:
        back = await bridge.call(bridge.engine.restore, run_ids)
        if back:
            select(back[0])
        if len(back) < len(run_ids):
            came = f"{len(back)} of {len(run_ids)} came back" if back else "nothing came back"
            raise RunBusy(came, hint="what is missing is gone from the trash for good")

    return Deletion(what, restore)
