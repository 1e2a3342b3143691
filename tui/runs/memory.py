"""How the run list was arranged, remembered for each project from one start to the next."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ...core.system.user_state import name_of_project, state_file, write_state
from ...core.text.plain import one_line
from .filter import LONGEST, parse_filter
from .order import Sort

if TYPE_CHECKING:
    from .list import RunList

MOST_FOLDED = 200
"""Groups that are remembered as folded."""
LARGEST = 64 * 1024
"""Bytes of the file that are read."""


class ListLayout(msgspec.Struct, frozen=True):
    filter: str = ""
    sort: Sort = Sort.AGE
    folded: tuple[str, ...] = ()
    """Units of the groups of which only the head is shown."""


class RunListMemory:
    """One small file; a read-only app only reads it."""

    def __init__(self, project_root: str, *, readonly: bool = False) -> None:
        self._project_root = project_root
        self._readonly = readonly
        self._turn = asyncio.Lock()

    @cached_property
    def _path(self) -> str:
        return state_file("lists", f"{name_of_project(self._project_root)}.json")

    async def recall(self, runs: RunList) -> None:
        """Arrange the list as before; no filter where there is one already, or one that is not understood any more."""
        known = await asyncio.to_thread(self.read)
        if known.sort is not Sort.AGE or known.folded:
            runs.order_by(known.sort, known.folded)
        if known.filter and not parse_filter(known.filter).problem and not runs.listing.filter:
            runs.filter_by(known.filter)

    async def keep(self, runs: RunList) -> None:
        """Remember how the list is arranged now."""
        async with self._turn:  # as it is by then: what was arranged last stays
            listing = runs.listing
            folded = tuple(sorted(listing.folded, reverse=True)[:MOST_FOLDED])
            await asyncio.to_thread(self.write, ListLayout(listing.filter.text, listing.sort, folded))

    def read(self) -> ListLayout:
        """Return what was remembered, from disk; a file that is missing or cannot be read remembers nothing."""
        try:
            with open(self._path, "rb") as file:
                known = msgspec.json.decode(file.read(LARGEST), type=ListLayout)
        except (OSError, msgspec.DecodeError):
            return ListLayout()
        return msgspec.structs.replace(known, filter=one_line(known.filter, LONGEST))

    def write(self, arranged: ListLayout) -> None:
        """Remember it on disk; where that cannot be done it holds as long as the app is open."""
        if self._readonly:
            return
        with suppress(OSError):
            write_state(self._path, msgspec.json.encode(arranged))
