"""Which panes are on the screen, how large they are and which one has the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from textual.screen import Screen
from textual.widget import Widget

from ...core.paths import state_file
from ...core.system.files import write_state
from ..actions import PANES, KeyContext
from ..transcript.search import SearchLine
from .workspace import Border

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


class Panes:
    """Shows, hides, sizes and focuses the deck's panes."""

    def __init__(
        self,
        screen: Screen[object],
        panes: Mapping[KeyContext, Widget],
        above: Widget,
        bridge: Bridge,
    ) -> None:
        """`above` holds presets and runs; `bridge` writes the shape that the operator gives the deck."""
        self._screen = screen
        self._panes = panes
        self._above = above
        self._zoomed: KeyContext | None = None
        self._shape = read_shape()
        self._bridge = bridge
        self._turn = asyncio.Lock()
        self._visible: frozenset[KeyContext] = frozenset()
        self._arranged: tuple[Room, frozenset[KeyContext], Shape] | None = None
        """What the screen was arranged for, None once a pane was shown on its own; to set styles costs a layout."""

    @property
    def place(self) -> KeyContext:
        """The pane that has the focus, or lends it to a line of its own."""
        focused = self._screen.focused
        ancestors = focused.ancestors if focused else ()
        is_searching = any(isinstance(node, SearchLine) for node in ancestors)
        lent = KeyContext.TRANSCRIPT if is_searching else KeyContext.RUNS
        return next((place for place, pane in self._panes.items() if pane.has_focus), lent)

    @property
    def zoomed(self) -> KeyContext | None:
        """The pane to which the operator gave the whole screen."""
        return self._zoomed

    @property
    def visible(self) -> frozenset[KeyContext]:
        return self._visible

    @property
    def _room(self) -> Room:
        return Room(*self._screen.app.size)

    def arrange(self) -> None:
        """Show what there is room for; the screen composes after the first call, so that nothing is styled twice."""
        room = self._room
        visible = visible_panes(room, self.place, self._zoomed)
        if self._arranged == (room, visible, self._shape):
            return
        self._visible = visible
        self._arranged = (room, visible, self._shape)
        for place, pane in self._panes.items():
            pane.display = place in visible
        self._above.display = visible != frozenset({KeyContext.TRANSCRIPT})
        beside = {KeyContext.PRESETS, KeyContext.RUNS} <= visible
        self._above.styles.height = above_height(self._shape, room) if len(visible) > 1 else "1fr"
        self._panes[KeyContext.PRESETS].styles.width = presets_width(self._shape, room) if beside else "1fr"
        self._screen.set_class(len(visible) == 1, "-zoomed")
        self._screen.set_class(room.is_tiny, "-tiny")
        self._screen.set_class(visible == frozenset(PANES), "-wide")

    def go_to(self, place: KeyContext) -> None:
        """Show a pane and give it the keys; a zoom goes with them."""
        if self._zoomed is not None:
            self._zoomed = place
        self._arranged = None
        self._panes[place].display = True
        self._above.display = True
        self._panes[place].focus()

    def go_round(self, step: int) -> None:
        self.go_to(PANES[(PANES.index(self.place) + step) % len(PANES)])

    def go_back(self) -> None:
        """Leave the zoom, else the pane for the runs."""
        if self.zoomed:
            self.zoom(None)
        else:
            self.go_to(KeyContext.RUNS)

    def zoom(self, place: KeyContext | None) -> None:
        """Give the whole screen to one pane; None ends it."""
        self._zoomed = place
        if place is not None:
            self.go_to(place)
        self.arrange()

    def toggle_zoom(self) -> None:
        self.zoom(None if self.zoomed else self.place)

    # --- sizes -------------------------------------------------------------------------------------------------------

    def widen_presets(self, steps: int) -> None:
        columns = presets_width(self._shape, self._room) + steps * ONE_STEP_COLUMNS
        self._take_on(with_presets(self._shape, self._room, columns))
        self._remember()

    def lower_transcript(self, steps: int) -> None:
        rows = above_height(self._shape, self._room) + steps * ONE_STEP_ROWS
        self._take_on(with_above(self._shape, self._room, rows))
        self._remember()

    def reset_layout(self) -> None:
        self._take_on(Shape())
        self._remember()

    def drag(self, border: Border, cells: int, *, done: bool) -> None:
        """Move a border so that what is left of it or above it has so many cells."""
        if border is Border.BESIDE:
            self._take_on(with_presets(self._shape, self._room, cells))
        else:
            self._take_on(with_above(self._shape, self._room, cells))
        if done:
            self._remember()

    def _remember(self) -> None:
        """Keep the shape for the next start; a read-only app has it for as long as it is open."""
        if not self._bridge.readonly:
            self._bridge.spawn(self._write)

    async def _write(self) -> None:
        async with self._turn:
            await self._bridge.call(write_shape, self._shape)  # as it is by now: the last one stays

    def _take_on(self, shape: Shape) -> None:
        if shape != self._shape:
            self._shape = shape
            self.arrange()
