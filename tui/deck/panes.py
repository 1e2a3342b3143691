"""Which panes are on the screen, how large they are and which one has the keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.screen import Screen
from textual.widget import Widget

from ..actions import PANES, KeyContext
from ..transcript.search import SearchLine
from .arrangement import (
    ONE_STEP_COLUMNS,
    ONE_STEP_ROWS,
    Room,
    Shape,
    above_height,
    presets_width,
    visible_panes,
    with_above,
    with_presets,
)
from .workspace import Border


class Panes:
    """Shows, hides, sizes and focuses the deck's panes."""

    def __init__(
        self,
        screen: Screen[object],
        panes: Mapping[KeyContext, Widget],
        above: Widget,
        shape: Shape,
        remember: Callable[[Shape], None],
    ) -> None:
        """`above` holds presets and runs; `remember` is told the shape that the operator gave the deck."""
        self._screen = screen
        self._panes = panes
        self._above = above
        self._zoomed: KeyContext | None = None
        self._shape = shape
        self._remember = remember
        self._visible: frozenset[KeyContext] = frozenset()
        self._arranged: tuple[Room, frozenset[KeyContext], Shape] | None = None
        """What the screen was arranged for, None once a pane was shown on its own; to set styles costs a layout."""

    @property
    def place(self) -> KeyContext:
        """The pane that has the focus, or lends it to a line of its own."""
        focused = self._screen.focused
        lent = (
            next((node.pane for node in focused.ancestors if isinstance(node, SearchLine)), None) if focused else None
        )
        return next((place for place, pane in self._panes.items() if pane.has_focus), lent or KeyContext.RUNS)

    @property
    def zoomed(self) -> bool:
        return self._zoomed is not None

    @property
    def zoomed_on(self) -> KeyContext | None:
        """The pane that has the whole screen because the operator wished it."""
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
        self._remember(self._shape)

    def lower_transcript(self, steps: int) -> None:
        rows = above_height(self._shape, self._room) + steps * ONE_STEP_ROWS
        self._take_on(with_above(self._shape, self._room, rows))
        self._remember(self._shape)

    def reset_layout(self) -> None:
        self._take_on(Shape())
        self._remember(self._shape)

    def drag(self, border: Border, cells: int, *, done: bool) -> None:
        """Move a border so that what is left of it or above it has so many cells."""
        if border is Border.BESIDE:
            self._take_on(with_presets(self._shape, self._room, cells))
        else:
            self._take_on(with_above(self._shape, self._room, cells))
        if done:
            self._remember(self._shape)

    def _take_on(self, shape: Shape) -> None:
        if shape != self._shape:
            self._shape = shape
            self.arrange()
