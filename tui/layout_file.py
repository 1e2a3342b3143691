"""How something was laid out, remembered in a small file from one start of the app to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Generic, TypeVar

import msgspec

from ..core.paths import state_file
from ..core.system.files import write_state
from ..core.text.decoding import UNDECODABLE, decode
from .terminal.after_close import carry_out

Layout = TypeVar("Layout", bound=msgspec.Struct)

LARGEST = 64 * 1024
"""Bytes of the file that are read."""


class LayoutFile(Generic[Layout]):
    """A read-only app only reads it."""

    def __init__(self, default: Layout, name: Callable[[], str], *, readonly: bool = False) -> None:
        """`name` is asked for the path below the directory for state when the file is first needed."""
        self._default = default
        self._name = name
        self._readonly = readonly
        self._turn = asyncio.Lock()

    @cached_property
    def _path(self) -> str:
        return state_file(self._name())

    def read(self) -> Layout:
        """Return what was remembered, from disk; the default where the file is missing or makes no sense."""
        try:
            with open(self._path, "rb") as file:
                return decode(file.read(LARGEST), type(self._default))
        except (OSError, *UNDECODABLE):
            return self._default

    async def keep(self, layout: Callable[[], Layout]) -> None:
        """Write the layout as it is when its turn comes, so that the last one stays."""
        async with self._turn:
            await carry_out(self.write, layout())

    def write(self, layout: Layout) -> None:
        """Write a layout to disk; where that fails it holds for as long as the app is open."""
        if not self._readonly:
            with suppress(OSError):
                write_state(self._path, msgspec.json.encode(layout))
