"""The keys that dialogs share; pure."""

from __future__ import annotations

from .model import Action, Place, at

_CLOSED_BY_ESCAPE = (
    Place.LAUNCH,
    Place.EDIT,
    Place.COPY,
    Place.DETAIL,
    Place.CLEAN_UP,
    Place.READING,
    Place.PICK,
    Place.ASK,
    Place.CONFIRM,
    Place.HELP,
)
_ONLY_READ = (Place.DETAIL, Place.READING, Place.HELP)
"""Where there is nothing to cancel."""
_SCROLLED = (Place.HELP, Place.READING)
"""Where the arrows move a text, not a cursor."""


def _scrolls(key: str) -> tuple[tuple[Place, str], ...]:
    return tuple((place, key) for place in _SCROLLED)


DIALOGS = (
    Action(
        "cancel",
        (*((place, "escape") for place in _CLOSED_BY_ESCAPE), *at(Place.CONFIRM, "n")),
        "cancel",
        "Close the dialog; nothing happens.",
        do="screen.cancel",
        footer=2,
        name_here=lambda situation: "close" if situation.place in _ONLY_READ else "cancel",
    ),
    Action("confirm", at(Place.CONFIRM, "y"), "yes", "Do it.", do="screen.confirm", footer=1),
    Action("scroll_down", _scrolls("down"), "down", "One row down.", do="screen.move('down')"),
    Action("scroll_up", _scrolls("up"), "up", "One row up.", do="screen.move('up')"),
    Action("scroll_page_down", _scrolls("pagedown"), "page down", "One page down.", do="screen.move('page_down')"),
    Action("scroll_page_up", _scrolls("pageup"), "page up", "One page up.", do="screen.move('page_up')"),
)
