"""Remembers a layout in a small file from one start of the app to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Generic, TypeVar

import msgspec

from ..core.paths import state_file
from ..core.system.files import write_state
from ..core.system.record import read_record
from .terminal.after_close import carry_out

Layout = TypeVar("Layout", bound=msgspec.Struct)

LARGEST = 64 * 1024
"""Maximum bytes of the file to read."""


class LayoutFile(Generic[Layout]):
    """A read-only app only reads it."""

    def __init__(self, default: Layout, name: Callable[[], str], *, readonly: bool = False) -> None:
        """`name` returns the path below the state directory; it is called when the file is first needed."""
        self._default = default
        self._name = name
        self._readonly = readonly
        self._lock = asyncio.Lock()

    @cached_property
    def _path(self) -> str:
        return state_file(self._name())

    def read(self) -> Layout:
        """Return the layout from disk; the default if the file is missing or invalid."""
        return read_record(self._path, type(self._default), self._default, follow=True, largest=LARGEST)

    async def keep(self, layout: Callable[[], Layout]) -> None:
        """Write the current layout once earlier writes are done, so that the last one stays."""
        async with self._lock:
            await carry_out(self.write, layout())

    def write(self, layout: Layout) -> None:
        """Write a layout to disk; if that fails it lasts until the app is closed."""
        if not self._readonly:
            with suppress(OSError):
                write_state(self._path, msgspec.json.encode(layout))
