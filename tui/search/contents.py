"""Which runs contain the texts of the filter's `text:`: searched as you type, then in changed runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from ..feed.bridge import Bridge
from ..feed.repeater import Repeater
from ._hits import pattern_of

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ..engine_api import EngineApi
    from ..runs.store import RunStore

AGAIN_S = 0.5
"""Seconds between two searches of changed runs."""


class Contents:
    """Keeps `RunStore.holding` up to date while a filter has texts; without one it does nothing."""

    def __init__(self, bridge: Bridge, run_store: RunStore, refilter: Callable[[Iterable[str]], None]) -> None:
        """`refilter` is called with the runs found to contain a text."""
        self._bridge = bridge
        self._run_store = run_store
        self._refilter = refilter
        self._over = threading.Event()
        """Set when the texts change."""
        self._changed: set[str] = set()
        self._sought: set[str] = set()
        """Texts not yet searched in all runs."""
        self._seeking = Repeater(bridge, self._search_all, "Search stopped")
        self._catching_up = Repeater(bridge, self._search_changed, "Search stopped")

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
            holding.setdefault(text, set())
        self._sought = set(texts)
        if texts:
            self._seeking.ask()

    def runs_changed(self, update: Update) -> None:
        """Record which runs may contain more than before."""
        if self._run_store.holding:
            self._changed.update(run.run_id for run in update.runs)
            self._catching_up.ask()

    async def _search_all(self) -> None:
        while self._sought:
            over, text = self._over, next(iter(self._sought))
            await self._search(text, None, over, self._seeking)
            if over is self._over:
                self._sought.discard(text)

    async def _search(
        self, text: str, run_ids: Collection[str] | None, over: threading.Event, searching: Repeater
    ) -> None:
        def is_over() -> bool:
            searching.beat()
            return over.is_set()

        matching_ids = await self._bridge.read(holding, self._bridge.engine, text, run_ids, is_over)
        if not over.is_set():
            self._run_store.holding[text] |= matching_ids
            self._refilter(matching_ids)

    async def _search_changed(self) -> None:
        over, changed = self._over, set(self._changed)
        self._changed.clear()
        for text, holding_ids in tuple(self._run_store.holding.items()):
            if run_ids := changed - holding_ids:
                await self._search(text, run_ids, over, self._catching_up)
        await asyncio.sleep(AGAIN_S)


def holding(engine: EngineApi, text: str, run_ids: Collection[str] | None, is_over: Callable[[], bool]) -> set[str]:
    """Return the runs that contain a text."""
    try:
        pattern = pattern_of(text)
    except UsageError:
        return set()
    return {run_hits.run_id for run_hits in engine.search(pattern, run_ids, cancelled=is_over)}
