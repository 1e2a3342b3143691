"""The filter of the run list, remembered for each project from one start to the next."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from ...core.paths import user_state_dir
from ...core.plain import one_line
from .filtering import LONGEST, parse_filter

if TYPE_CHECKING:
    from ..widgets.run_list import RunList


class FilterMemory:
    """One small file; a read-only app only reads it."""

    def __init__(self, project_root: str, *, readonly: bool = False) -> None:
        name = sha256(os.fsencode(project_root)).hexdigest()[:16]
        self._path = os.path.join(user_state_dir(), "filters", name)
        self._readonly = readonly

    async def recall(self, runs: RunList) -> None:
        """Filter as before, unless there is a filter already or what was remembered cannot be understood any more."""
        text = await asyncio.to_thread(self.read)
        if text and not parse_filter(text).problem and not runs.listing.filter:
            runs.filter_by(text)

    async def keep(self, runs: RunList) -> None:
        """Remember the filter that stands now."""
        await asyncio.to_thread(self.write, runs.listing.filter.text)

    def read(self) -> str:
        """Answer what was remembered, from disk; a file that is missing or cannot be read remembers nothing."""
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                return one_line(file.read(4 * LONGEST), LONGEST)
        except OSError:
            return ""

    def write(self, text: str) -> None:
        """Remember it on disk; where that cannot be done the filter holds as long as the app is open."""
        if self._readonly:
            return
        half_written = f"{self._path}.{os.getpid()}"
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(half_written, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            os.replace(half_written, self._path)
