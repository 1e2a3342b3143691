"""How the deck was divided, remembered for the user from one start to the next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ...core.system.user_state import state_file, write_state
from .arrangement import Shape

if TYPE_CHECKING:
    from ..feed.bridge import Bridge

NAME = "layout.json"


class Remembering:
    """Remembers a shape beside the event loop; a read-only app keeps it for as long as it is open."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._turn = asyncio.Lock()
        self._shape = Shape()

    def __call__(self, shape: Shape) -> None:
        if not self._bridge.readonly:
            self._shape = shape
            self._bridge.spawn(self._write)

    async def _write(self) -> None:
        async with self._turn:
            await self._bridge.call(write_shape, self._shape)  # as it is by now: the last one stays


def read_shape() -> Shape:
    """Answer what was remembered; a file that is missing or makes no sense remembers nothing."""
    try:
        with open(state_file(NAME), "rb") as file:
            shape = msgspec.json.decode(file.read(4096), type=Shape)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Shape()
    return Shape(_share(shape.presets), _share(shape.above))


def write_shape(shape: Shape) -> None:
    """Remember it. Raises OSError."""
    write_state(state_file(NAME), msgspec.json.encode(shape))


def _share(written: float | None) -> float | None:
    return written if written is not None and 0 < written < 1 else None
