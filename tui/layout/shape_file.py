"""How the deck was divided, remembered for the user from one start to the next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from ...core.paths import user_state_dir
from .arrangement import Shape

if TYPE_CHECKING:
    from ..bridge import Bridge

NAME = "layout.json"


class Remembering:
    """Remembers a shape beside the event loop; a read-only app keeps it for as long as it is open."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def __call__(self, shape: Shape) -> None:
        if not self._bridge.readonly:
            self._bridge.spawn(self._bridge.call(write_shape, shape))


def read_shape() -> Shape:
    """Answer what was remembered; a file that is missing or makes no sense remembers nothing."""
    try:
        with open(_path(), "rb") as file:
            shape = msgspec.json.decode(file.read(4096), type=Shape)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Shape()
    return Shape(_share(shape.presets), _share(shape.above))


def write_shape(shape: Shape) -> None:
    """Remember it. Raises OSError."""
    path = _path()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    half_written = f"{path}.{os.getpid()}"
    with open(half_written, "wb") as file:
        file.write(msgspec.json.encode(shape))
    os.replace(half_written, path)


def _path() -> str:
    return os.path.join(user_state_dir(), NAME)


def _share(written: float | None) -> float | None:
    return written if written is not None and 0 < written < 1 else None
