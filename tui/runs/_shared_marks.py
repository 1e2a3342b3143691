"""Marks of read results, shared with other windows and commands: followed and written beside the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from textual.widget import Widget

from ..feed.repeater import Repeater
from .seen import LARGEST

if TYPE_CHECKING:
    from ..feed.bridge import Bridge
    from .seen import SeenFile
    from .store import RunStore

LOOK_S = 2.0
"""Between two reads of other windows' marks."""


class SharedMarks:
    def __init__(
        self, node: Widget, bridge: Bridge, run_store: RunStore, file: SeenFile, tell: Callable[[set[str]], None]
    ) -> None:
        """`tell` gets the runs that have become unread or read, while `node` is on the screen."""
        self._node = node
        self._bridge = bridge
        self._run_store = run_store
        self._file = file
        self._tell = tell
        self._unwritten: list[tuple[str, Sequence[str]]] = []
        """Marks that are not yet written, in order."""
        self._awaits_runs = False
        """Whether the file is too large, but cannot be shortened before all runs are known."""
        self._working = Repeater(bridge, self._write_and_read, "Read marks stopped")

    def begin(self) -> None:
        """Read the marks after the first paint, and check for new ones from then on."""
        self._node.call_after_refresh(self._working.ask)
        self._node.set_interval(LOOK_S, self._look)

    def write(self, mark: str, run_ids: Sequence[str]) -> None:
        """Write a mark, after the ones before it."""
        self._unwritten.append((mark, run_ids))
        self._working.ask()

    def _look(self) -> None:
        may_shorten = self._awaits_runs and self._run_store.is_complete
        if self._file.has_changed or self._run_store.handed_over or may_shorten:
            self._working.ask()

    async def _write_and_read(self) -> None:
        while self._unwritten:
            written = self._unwritten[0]
            await self._bridge.call(self._file.add, *written)
            if self._unwritten and self._unwritten[0] is written:
                self._unwritten.pop(0)
        store = self._run_store
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        content = await self._bridge.call(self._file.read, now)
        if changed := store.take_marks(content):
            self._tell(changed)
        self._awaits_runs = len(content) > LARGEST and not store.is_complete
        if len(content) > LARGEST and store.is_complete:
            shorter = store.marks.shortened(tuple(store.runs), time.time())
            await self._bridge.call(self._file.shorten, content, shorter)
