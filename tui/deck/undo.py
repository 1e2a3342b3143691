"""What was deleted last and how it comes back; and what is deleted by itself when the app starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.errors import RunBusy, SubdeckError
from ...core.run.describe import runs_word, size_text
from ..actions import Action, key_of

if TYPE_CHECKING:
    from ..feed.bridge import Bridge


class Deletion(Struct, frozen=True):
    what: str
    """Said when it came back: `repo-scout 7f3a9c`, `3 runs`."""
    restore: Callable[[], Coroutine[None, None, None]]
    """Brings it back; raises a SubdeckError or an OSError when it cannot."""


class Undo:
    """Deletions of this session of the app, the last one first out."""

    def __init__(self, bridge: Bridge, select: Callable[[str], object]) -> None:
        """`select` puts the cursor on a run that is back."""
        self._bridge = bridge
        self._select = select
        self._deletions: list[Deletion] = []

    def __bool__(self) -> bool:
        return bool(self._deletions)

    def push(self, deletion: Deletion) -> None:
        self._deletions.append(deletion)

    def push_runs(self, what: str, run_ids: tuple[str, ...]) -> None:
        """Keep the deletion of these runs, which `what` names."""
        self.push(Deletion(what, partial(self._restore, run_ids)))

    def pop(self) -> Deletion:
        """Take the last deletion; raise IndexError when nothing was deleted."""
        return self._deletions.pop()

    async def _restore(self, run_ids: tuple[str, ...]) -> None:
        back = await self._bridge.call(self._bridge.engine.restore, run_ids)
        if back:
            self._select(back[0])
        if len(back) < len(run_ids):
            came = f"{len(back)} of {len(run_ids)} came back" if back else "nothing came back"
            raise RunBusy(came, hint="what is missing is gone from the trash for good")


async def clean_up_at_start(bridge: Bridge, undo: Undo, actions: Sequence[Action]) -> None:
    """Remove what has been in the trash for a day, move what the settings' rules take there, and say so in one line."""
    try:
        await bridge.call(bridge.engine.purge)
        rule = bridge.engine.settings.retention
        if not rule.is_set:
            return
        from ...core.project.trash import apply_retention

        selection, cleaned = await bridge.call(apply_retention, bridge.engine.project, rule, time.time())
    except (SubdeckError, OSError) as error:
        bridge.notify(f"Old runs could not be cleaned up: {error}", severity="warning", markup=False)
        return
    if cleaned.moved:
        undo.push_runs(runs_word(len(cleaned.moved)), cleaned.moved[::-1])
        what = "1 old run" if len(cleaned.moved) == 1 else f"{len(cleaned.moved)} old runs"
        size = size_text(sum(run.size for run in selection.going if run.run_id in cleaned.moved))
        back = f"{key_of('undo', actions)} brings them back"
        bridge.notify(f"{what} ({size}) went to the trash, by the setting retention; {back}.", markup=False)
