"""Undo of the last action; and the automatic deletions when the app starts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ...core.errors import SubdeckError, reason
from ...core.run.describe import size_text
from ..keys.command import Action
from ..keys.keymap import key_of

if TYPE_CHECKING:
    from ...core.work.operation import Act, TakenBack
    from ..feed.bridge import Bridge


class Undo:
    """The project's last action, by this app or another process, and its undo."""

    def __init__(self, bridge: Bridge, changed: Callable[[], object]) -> None:
        """Call `changed` when undo becomes possible or impossible."""
        self._bridge = bridge
        self._changed = changed
        self._has_any = False
        self._lock = asyncio.Lock()

    def __bool__(self) -> bool:
        """Return whether the last lookup found an action to undo."""
        return self._has_any

    async def look(self) -> Act | None:
        """Look up the action to undo; call this after every new action."""
        act = await self._bridge.call(self._bridge.engine.last_act)
        if self._has_any != (act is not None):
            self._has_any = act is not None
            self._changed()
        return act

    async def take_back(self, is_agreed: Callable[[Act], Awaitable[bool]]) -> TakenBack | None:
        """Undo the last action, if that is agreed to; raise a SubdeckError if it fails.

        One at a time: a concurrent call gets the action before that. Raises IndexError if there is none.
        """
        async with self._lock:
            act = await self.look()
            if act is None:
                raise IndexError
            if not await is_agreed(act):
                return None
            try:
                return await self._bridge.call(self._bridge.engine.take_back, act)
            finally:
                await self.look()


async def clean_up_at_start(bridge: Bridge, undo: Undo, actions: Sequence[Action]) -> None:
    """Empty the trash after a day, apply the retention rules of the settings, and report it in one line."""
    try:
        await bridge.call(bridge.engine.purge)
        await undo.look()
        rule = bridge.engine.settings.retention
        if not rule.is_set:
            return
        from ...core.work.deletion import apply_retention

        selection, cleaned = await bridge.call(apply_retention, bridge.engine.project, rule, time.time())
    except (SubdeckError, OSError) as error:
        bridge.notify(f"Cannot clean up old runs: {reason(error)}", severity="warning", markup=False)
        return
    if cleaned.moved:
        await undo.look()
        what = "1 old run" if len(cleaned.moved) == 1 else f"{len(cleaned.moved)} old runs"
        size = size_text(sum(run.size for run in selection.going if run.run_id in cleaned.moved))
        back = f"{key_of('undo', actions)} restores {'it' if len(cleaned.moved) == 1 else 'them'}"
        bridge.notify(f"Moved {what} ({size}) to the trash (setting: retention). {back}.", markup=False)
