"""Which panes are on the screen and which one has the keys."""

from __future__ import annotations

from collections.abc import Mapping

from textual.screen import Screen
from textual.widget import Widget

from .actions import PANES, Place
from .arrangement import visible_panes

ABOVE = "above"
"""The id of what holds presets and runs."""


class Panes:
    """Shows, hides and focuses the deck's panes."""

    def __init__(self, screen: Screen[object], panes: Mapping[Place, Widget]) -> None:
        self._screen = screen
        self._panes = panes
        self._zoomed: Place | None = None

    @property
    def place(self) -> Place:
        """The pane that has the focus."""
        return next((place for place, pane in self._panes.items() if pane.has_focus), Place.RUNS)

    @property
    def zoomed(self) -> bool:
        return self._zoomed is not None

    def arrange(self) -> None:
        """Show what there is room for."""
        visible = visible_panes(self._screen.app.size.width, self.place, self._zoomed)
        for place, pane in self._panes.items():
            pane.display = place in visible
        self._screen.query_one(f"#{ABOVE}").display = visible != frozenset({Place.TRANSCRIPT})
        self._screen.set_class(len(visible) == 1, "-zoomed")
        self._screen.set_class(visible == frozenset(PANES), "-wide")

    def go_to(self, place: Place) -> None:
        """Show a pane and give it the keys; a zoom goes with them."""
        if self._zoomed is not None:
            self._zoomed = place
        self._panes[place].display = True
        self._screen.query_one(f"#{ABOVE}").display = True
        self._panes[place].focus()

    def go_round(self, step: int) -> None:
        self.go_to(PANES[(PANES.index(self.place) + step) % len(PANES)])

    def go_back(self) -> None:
        """Leave the zoom, else the pane for the runs."""
        if self.zoomed:
            self.zoom(None)
        else:
            self.go_to(Place.RUNS)

    def zoom(self, place: Place | None) -> None:
        """Give the whole screen to one pane; None ends it."""
        self._zoomed = place
        if place is not None:
            self.go_to(place)
        self.arrange()

    def toggle_zoom(self) -> None:
        self.zoom(None if self.zoomed else self.place)
