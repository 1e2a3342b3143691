"""Which panes are on the screen and how large they are; pure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.paths import state_file
from ...core.system.files import write_state
from ..actions import PANES, KeyContext

if TYPE_CHECKING:
    from ..feed.bridge import Bridge

WIDE = 100
"""From this many columns on the presets have their own place beside the runs."""
LEAST_WIDTH, LEAST_HEIGHT = 40, 12
"""On less, one pane is all there is room for."""
TINY_HEIGHT = 8
"""On less, or below `LEAST_WIDTH`, that pane goes without a frame and without the header."""
LINES = 2
"""Header and status line."""

LEAST_PRESETS, LEAST_RUNS = 22, 56
"""Columns of the panes with their frames."""
LEAST_ABOVE, LEAST_TRANSCRIPT = 4, 4
"""Rows of the same."""

FIRST_PRESETS = 30
FIRST_ABOVE, FIRST_ABOVE_STACKED = 0.5, 0.4

ONE_STEP_COLUMNS, ONE_STEP_ROWS = 4, 2
"""How far a key moves a border."""


class Shape(Struct, frozen=True):
    """How the operator divided the deck, in shares that outlive another size of the terminal; None where unchanged."""

    presets: float | None = None
    """Of the columns, for the presets where they are beside the runs."""
    above: float | None = None
    """Of the rows, for what stands above the transcript."""


class Room(Struct, frozen=True):
    """What the terminal offers."""

    width: int
    height: int

    @property
    def deck_height(self) -> int:
        """Rows of the panes, where there is a header."""
        return max(1, self.height - LINES)

    @property
    def holds_several(self) -> bool:
        return self.width >= LEAST_WIDTH and self.height >= LEAST_HEIGHT

    @property
    def is_tiny(self) -> bool:
        return self.width < LEAST_WIDTH or self.height < TINY_HEIGHT


def visible_panes(room: Room, place: KeyContext, zoomed: KeyContext | None) -> frozenset[KeyContext]:
    """Return the panes to show when `place` has the focus; on a narrow screen presets come over the runs."""
    if zoomed is not None:
        return frozenset({zoomed})
    if not room.holds_several:
        return frozenset({place})
    if room.width >= WIDE:
        return frozenset(PANES)
    above = KeyContext.PRESETS if place is KeyContext.PRESETS else KeyContext.RUNS
    return frozenset({above, KeyContext.TRANSCRIPT})


def presets_width(shape: Shape, room: Room) -> int:
    """Columns of the presets beside the runs."""
    wanted = max(FIRST_PRESETS, room.width // 5) if shape.presets is None else round(shape.presets * room.width)
    return max(LEAST_PRESETS, min(wanted, room.width - LEAST_RUNS))


def above_height(shape: Shape, room: Room) -> int:
    """Rows of what stands above the transcript."""
    first = FIRST_ABOVE if room.width >= WIDE else FIRST_ABOVE_STACKED
    wanted = round((first if shape.above is None else shape.above) * room.deck_height)
    return max(LEAST_ABOVE, min(wanted, room.deck_height - LEAST_TRANSCRIPT))


def with_presets(shape: Shape, room: Room, columns: int) -> Shape:
    """Give the presets this many columns, or as many as can be."""
    bounded = presets_width(Shape(presets=columns / room.width), room)
    return replace(shape, presets=bounded / room.width)


def with_above(shape: Shape, room: Room, rows: int) -> Shape:
    """Give what is above the transcript this many rows, or as many as can be."""
    bounded = above_height(Shape(above=rows / room.deck_height), room)
    return replace(shape, above=bounded / room.deck_height)


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
    """Return what was remembered; a file that is missing or makes no sense remembers nothing."""
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
