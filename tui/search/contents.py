"""Which runs hold the texts of the filter's `text:`: searched for as they are typed, then in what changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from ..feed.bridge import Bridge, Repeater
from .query import pattern_of

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ..engine_api import EngineApi
    from ..runs.store import RunStore

AGAIN_S = 0.5
"""Seconds between two searches of the runs that change."""


class Contents:
    """Keeps `RunStore.holding` true while a filter asks for texts; without one it does nothing."""

    def __init__(self, bridge: Bridge, run_store: RunStore, refilter: Callable[[Iterable[str]], None]) -> None:
        """`refilter` is called with the runs that were found to hold a text."""
        self._bridge = bridge
        self._run_store = run_store
        self._refilter = refilter
        self._over = threading.Event()
        """Set when other texts are sought."""
        self._changed: set[str] = set()
        self._catching_up = Repeater(bridge, self._search_changed)

    def seek(self, texts: frozenset[str]) -> None:
        """Search for these texts from now on, and for no others."""
        holding = self._run_store.holding
        if holding.keys() == texts:
            return
        self._over.set()
        self._over = threading.Event()
        self._changed.clear()
        for text in holding.keys() - texts:
            del holding[text]
        for text in texts:
            self._bridge.spawn(self._search, text, None, self._over)
            holding.setdefault(text, set())

    def runs_changed(self, update: Update) -> None:
        """Note which runs may hold more than before."""
        if self._run_store.holding:
            self._changed.update(run.run_id for run in update.runs)
            self._catching_up.ask()

    async def _search(self, text: str, run_ids: Collection[str] | None, over: threading.Event) -> None:
        found = await self._bridge.call(holding, self._bridge.engine, text, run_ids, over)
        if not over.is_set():
            self._run_store.holding[text] |= found
            self._refilter(found)

    async def _search_changed(self) -> None:
        over, changed = self._over, set(self._changed)
        self._changed.clear()
        for text, known in tuple(self._run_store.holding.items()):
            if left := changed - known:
                await self._search(text, left, over)
        await asyncio.sleep(AGAIN_S)


def holding(engine: EngineApi, text: str, run_ids: Collection[str] | None, over: threading.Event) -> set[str]:
    """Return the runs that hold a text."""
    try:
        pattern = pattern_of(text)
    except UsageError:
        return set()
    return {found.run_id for found in engine.search(pattern, run_ids, cancelled=over.is_set)}
