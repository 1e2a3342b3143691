"""How the panes share the screen: which fit, and their sizes; pure."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..keys.command import PANES, KeyContext
from ..layout_file import LayoutFile

WIDE = 100
"""Columns from which the focused presets are shown beside the runs."""
ROOMY = 140
"""Columns from which they always are."""
BESIDE = 180
"""Columns from which the transcript is beside the runs, not below them."""
LEAST_WIDTH, LEAST_HEIGHT = 40, 12
"""Below this size only one pane fits."""
TINY_HEIGHT = 8
"""Below this height, or `LEAST_WIDTH`, that pane has no frame and no header."""
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
FIRST_LEFT = 0.65

MOST_REQUEST = 0.6
"""Maximum share of the rows for a request below the transcript."""
LEAST_REQUEST = 5
"""Its rows in a low terminal."""

ONE_STEP_COLUMNS, ONE_STEP_ROWS = 4, 2
"""How far a key moves a border."""


Share = Annotated[float, Meta(gt=0, lt=1)]


class Shape(Struct, frozen=True):
    """Your layout, in shares that fit any terminal size; None if unchanged."""

    presets: Share | None = None
    """Of the columns, for presets beside the runs."""
    above: Share | None = None
    """Of the rows, for the part above the transcript."""
    left: Share | None = None
    """Of the columns, for the part left of a transcript beside it."""


class Room(Struct, frozen=True):
    """The terminal's size."""

    width: int
    height: int

    @property
    def deck_height(self) -> int:
        """Rows of the panes below a header."""
        return max(1, self.height - LINES)

    @property
    def holds_several(self) -> bool:
        return self.width >= LEAST_WIDTH and self.height >= LEAST_HEIGHT

    @property
    def is_beside(self) -> bool:
        """Whether the transcript is beside the runs."""
        return self.width >= BESIDE and self.holds_several

    @property
    def is_tiny(self) -> bool:
        return self.width < LEAST_WIDTH or self.height < TINY_HEIGHT


NOTHING_EMPTY: frozenset[KeyContext] = frozenset()


def visible_panes(
    room: Room,
    focused: KeyContext,
    zoomed: KeyContext | None,
    shape: Shape,
    empty: frozenset[KeyContext] = NOTHING_EMPTY,
) -> frozenset[KeyContext]:
    """Return the panes to show; `focused` is the pane with the focus, `empty` panes give their room to the others.

    With little room, presets are hidden unless they have the focus or you set their width; on a narrow screen they
    replace the runs.
    """
    if zoomed is not None:
        return frozenset({zoomed})
    if not room.holds_several:
        return frozenset({focused})
    if room.width >= ROOMY or (room.width >= WIDE and (focused is KeyContext.PRESETS or shape.presets is not None)):
        panes = frozenset(PANES)
    else:
        above = KeyContext.PRESETS if focused is KeyContext.PRESETS else KeyContext.RUNS
        panes = frozenset({above, KeyContext.TRANSCRIPT})
    # Without runs there is no transcript, but presets and runs list the keys for the first run.
    unused = KeyContext.TRANSCRIPT if KeyContext.RUNS in empty else KeyContext.PRESETS
    return panes - {unused} if empty and focused is not unused else panes


def presets_width(shape: Shape, room: Room, *, has_transcript: bool = True) -> int:
    """Return the columns of presets beside the runs; without a transcript there are no runs, only keys for the first
    one.
    """
    width = left_width(shape, room) if room.is_beside and has_transcript else room.width
    if shape.presets is not None:
        columns = round(shape.presets * room.width)
    elif not has_transcript:
        columns = width
    elif room.is_beside:
        columns = FIRST_PRESETS_OF_THREE
    else:
        columns = max(FIRST_PRESETS, room.width // 5)
    return max(LEAST_PRESETS, min(columns, width - LEAST_RUNS))


def left_width(shape: Shape, room: Room) -> int:
    """Return the columns of presets and runs beside the transcript."""
    columns = round((FIRST_LEFT if shape.left is None else shape.left) * room.width)
    return max(LEAST_PRESETS + LEAST_RUNS, min(columns, room.width - LEAST_BESIDE))


def above_height(shape: Shape, room: Room, request: int = 0) -> int:
    """Return the rows of the part above the transcript; `request` is the height that a request below it needs."""
    first = FIRST_ABOVE if room.width >= WIDE else FIRST_ABOVE_STACKED
    rows = round((first if shape.above is None else shape.above) * room.deck_height)
    below = LEAST_TRANSCRIPT + min(request, request_height(room))
    return max(LEAST_ABOVE, min(rows, room.deck_height - below))


def request_height(room: Room) -> int:
    """Return the maximum rows of a request with its frame."""
    return max(LEAST_REQUEST, round(MOST_REQUEST * room.deck_height))


def with_presets(shape: Shape, room: Room, columns: int) -> Shape:
    """Set the columns of the presets, within the limits."""
    bounded = presets_width(Shape(presets=columns / room.width), room)
    return replace(shape, presets=bounded / room.width)


def with_above(shape: Shape, room: Room, rows: int) -> Shape:
    """Set the rows of the part above the transcript, within the limits."""
    bounded = above_height(Shape(above=rows / room.deck_height), room)
    return replace(shape, above=bounded / room.deck_height)


def with_left(shape: Shape, room: Room, columns: int) -> Shape:
    """Set the columns of the part left of the transcript, within the limits."""
    bounded = left_width(Shape(left=columns / room.width), room)
    return replace(shape, left=bounded / room.width)


def shape_file(*, readonly: bool = False) -> LayoutFile[Shape]:
    return LayoutFile(Shape(), lambda: "layout.json", readonly=readonly)
