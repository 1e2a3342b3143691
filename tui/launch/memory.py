"""The memory of launches as the app holds it: read and written in threads, one change at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...core.launch.memory import LaunchMemory, change_memory, read_memory
from ..feed.bridge import Bridge


class Remembered:
    """Owned by the deck; what cannot be written is still known until the app ends."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._turn = asyncio.Lock()
        self.known: LaunchMemory | None = None
        """None until it was read for the first time."""

    async def read(self) -> LaunchMemory:
        async with self._turn:
            if self.known is None:
                self.known = await self._bridge.call(read_memory, self._bridge.engine.project)
            return self.known

    async def change(self, change: Callable[[LaunchMemory], LaunchMemory]) -> None:
        """Change what is known, and the file. Raises OSError when only the first could be done."""
        async with self._turn:
            try:
                self.known = await self._bridge.call(change_memory, self._bridge.engine.project, change)
            except OSError:
                self.known = change(self.known or LaunchMemory())
                raise
