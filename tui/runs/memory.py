"""How the run list was arranged, remembered for each project from one start to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

import msgspec

from ...core.paths import project_key, state_file
from ...core.system.files import write_state
from ...core.text.plain import one_line
from .filter import LONGEST
from .order import Sort

LARGEST = 64 * 1024
"""Bytes of the file that are read."""


class ListLayout(msgspec.Struct, frozen=True):
    filter: str = ""
    sort: Sort = Sort.AGE
    folded: tuple[str, ...] = ()
    """Keys of the groups of which only the head is shown."""


class RunListMemory:
    """One small file; a read-only app only reads it."""

    def __init__(self, project_root: str, *, readonly: bool = False) -> None:
        self._project_root = project_root
        self._readonly = readonly
        self._turn = asyncio.Lock()

    @cached_property
    def _path(self) -> str:
        return state_file("lists", f"{project_key(self._project_root)}.json")

    async def keep(self, layout: Callable[[], ListLayout]) -> None:
        """Write the layout as it is when its turn comes, so that the last one stays."""
        async with self._turn:
            await asyncio.to_thread(self.write, layout())

    def read(self) -> ListLayout:
        """Return what was remembered, from disk; a file that is missing or cannot be read remembers nothing."""
        try:
            with open(self._path, "rb") as file:
                known = msgspec.json.decode(file.read(LARGEST), type=ListLayout)
        except (OSError, msgspec.DecodeError):
            return ListLayout()
        return msgspec.structs.replace(known, filter=one_line(known.filter, LONGEST))

    def write(self, layout: ListLayout) -> None:
        """Write a layout to disk; where that fails it holds for as long as the app is open."""
        if self._readonly:
            return
        with suppress(OSError):
            write_state(self._path, msgspec.json.encode(layout))
