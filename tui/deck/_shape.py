"""How the panes share the screen: which of them there is room for, and how large each is; pure."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..keys.command import PANES, KeyContext
from ..layout_file import LayoutFile

WIDE = 100
"""From this many columns on the presets have their own place beside the runs, while they have the keys."""
ROOMY = 140
"""From this many on they have it always."""
BESIDE = 180
"""From this many on the transcript stands beside the runs, not below them."""
LEAST_WIDTH, LEAST_HEIGHT = 40, 12
"""On less, one pane is all there is room for."""
TINY_HEIGHT = 8
"""On less, or below `LEAST_WIDTH`, that pane goes without a frame and without the header."""
LINES = 2
"""Header and status line."""

LEAST_PRESETS, LEAST_RUNS = 22, 56
"""Columns of the panes with their frames."""
LEAST_BESIDE = 48
"""Columns of the transcript beside them."""
LEAST_ABOVE, LEAST_TRANSCRIPT = 4, 4
"""Rows of the same."""

FIRST_PRESETS, FIRST_PRESETS_OF_THREE = 30, 24
FIRST_ABOVE, FIRST_ABOVE_STACKED = 0.5, 0.4
FIRST_LEFT = 0.6

ONE_STEP_COLUMNS, ONE_STEP_ROWS = 4, 2
"""How far a key moves a border."""


Share = Annotated[float, Meta(gt=0, lt=1)]


class Shape(Struct, frozen=True):
    """How the operator divided the deck, in shares that outlive another size of the terminal; None where unchanged."""

    presets: Share | None = None
    """Of the columns, for the presets where they are beside the runs."""
    above: Share | None = None
    """Of the rows, for what stands above the transcript."""
    left: Share | None = None
    """Of the columns, for what stands to the left of the transcript where that is beside it."""


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
    def is_beside(self) -> bool:
        """Whether the transcript stands beside the runs."""
        return self.width >= BESIDE and self.holds_several

    @property
    def is_tiny(self) -> bool:
        return self.width < LEAST_WIDTH or self.height < TINY_HEIGHT


def visible_panes(room: Room, place: KeyContext, zoomed: KeyContext | None, shape: Shape) -> frozenset[KeyContext]:
    """Return the panes to show when `place` has the focus.

    Where there is little room for them, presets are folded unless they have the keys or the operator gave them a width;
    on a narrow screen they come over the runs.
    """
    if zoomed is not None:
        return frozenset({zoomed})
    if not room.holds_several:
        return frozenset({place})
    if room.width >= ROOMY or (room.width >= WIDE and (place is KeyContext.PRESETS or shape.presets is not None)):
        return frozenset(PANES)
    above = KeyContext.PRESETS if place is KeyContext.PRESETS else KeyContext.RUNS
    return frozenset({above, KeyContext.TRANSCRIPT})


def presets_width(shape: Shape, room: Room) -> int:
    """Columns of the presets beside the runs."""
    if shape.presets is not None:
        wanted = round(shape.presets * room.width)
    elif room.is_beside:
        wanted = FIRST_PRESETS_OF_THREE
    else:
        wanted = max(FIRST_PRESETS, room.width // 5)
    width = left_width(shape, room) if room.is_beside else room.width
    return max(LEAST_PRESETS, min(wanted, width - LEAST_RUNS))


def left_width(shape: Shape, room: Room) -> int:
    """Columns of presets and runs where the transcript is beside them."""
    wanted = round((FIRST_LEFT if shape.left is None else shape.left) * room.width)
    return max(LEAST_PRESETS + LEAST_RUNS, min(wanted, room.width - LEAST_BESIDE))


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


def with_left(shape: Shape, room: Room, columns: int) -> Shape:
    """Give what is to the left of the transcript this many columns, or as many as can be."""
    bounded = left_width(Shape(left=columns / room.width), room)
    return replace(shape, left=bounded / room.width)


def shape_file(*, readonly: bool = False) -> LayoutFile[Shape]:
    return LayoutFile(Shape(), lambda: "layout.json", readonly=readonly)
