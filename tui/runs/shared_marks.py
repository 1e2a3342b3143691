"""Marks of read results, shared with other windows and commands: followed and written beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from textual.widget import Widget

if TYPE_CHECKING:
    from .seen import SeenFile
    from .store import RunStore

LOOK_S = 2.0
"""Between two looks at what others have marked as read."""


class SharedMarks:
    def __init__(self, node: Widget, run_store: RunStore, file: SeenFile, tell: Callable[[set[str]], None]) -> None:
        """`node` runs the workers; `tell` is called with the runs that have become unread, or read."""
        self._node = node
        self._run_store = run_store
        self._file = file
        self._tell = tell
        self._writing = asyncio.Lock()

    def begin(self) -> None:
        """Read the marks after the first paint, and look for new ones from then on."""
        self._node.call_after_refresh(self._read)
        self._node.set_interval(LOOK_S, self._look)

    def write(self, mark: str, run_ids: Sequence[str]) -> None:
        """Keep a mark, after the ones before it."""
        self._node.run_worker(partial(self._write_in_turn, mark, run_ids), exit_on_error=False)

    def _look(self) -> None:
        if self._file.has_changed or self._run_store.handed_over:
            self._read()

    def _read(self) -> None:
        self._node.run_worker(self._take, group="marks", exclusive=True, exit_on_error=False)

    async def _take(self) -> None:
        store = self._run_store
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        async with self._writing:
            unread = tuple(store.unseen | store.unread)
            content = await asyncio.to_thread(self._file.read, now, lambda: unread)
        if changed := store.take_marks(content):
            self._tell(changed)

    async def _write_in_turn(self, mark: str, run_ids: Sequence[str]) -> None:
        async with self._writing:
            await asyncio.to_thread(self._file.add, mark, run_ids)
