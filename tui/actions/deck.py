"""The actions that go about on the deck and around it; pure."""

from __future__ import annotations

from .model import Action, Place, at, in_panes, needs_above, needs_beside

DECK = (
    Action(
        "zoom",
        at(Place.DECK, "z"),
        "zoom",
        "Give the whole screen to one pane, and back.",
    ),
    Action("narrower", at(Place.DECK, "<"), "narrower", "Make the presets narrower.", needs_beside),
    Action("wider", at(Place.DECK, ">"), "wider", "Make the presets wider.", needs_beside),
    Action("lower", at(Place.DECK, "-"), "lower", "Make the transcript lower.", needs_above),
    Action("higher", at(Place.DECK, "+"), "higher", "Make the transcript higher.", needs_above),
    Action("as_at_first", at(Place.DECK, "="), "as at first", "Give the panes the sizes that they had at first."),
    Action("theme", at(Place.DECK, "T"), "theme", "Go to the next theme: dark, light, the terminal's own colours."),
    Action("runs", at(Place.DECK, "2"), "runs", "Go to the runs."),
    Action("transcript", at(Place.DECK, "3"), "transcript", "Go to the transcript."),
    Action("next_pane", at(Place.DECK, "tab"), "next pane", "Go to the next pane."),
    Action("previous_pane", at(Place.DECK, "shift+tab"), "previous pane", "Go to the previous pane."),
    Action(
        "back",
        at(Place.DECK, "escape"),
        "back",
        "Leave the zoom, then the pane; never quits.",
        footer=1,
        name_here=lambda situation: "back" if situation.zoomed else "",
    ),
    Action("help", at(Place.DECK, "?"), "help", "Show every key.", footer=3),
    Action("quit", at(Place.DECK, "q"), "quit", "Quit; runs go on in the background.", footer=12),
    Action(
        "palette",
        (*at(Place.DECK, ":"), *at(Place.APP, "ctrl+p")),
        "palette",
        "Find an action by its name.",
        do="app.command_palette",
    ),
    Action("how_to_quit", at(Place.APP, "ctrl+c"), "", "Say how to quit.", do="app.how_to_quit"),
    Action("down", in_panes("j", "down"), "down", "One row down.", do="move('down')"),
    Action("up", in_panes("k", "up"), "up", "One row up.", do="move('up')"),
    Action("page_down", in_panes("pagedown"), "page down", "One page down.", do="move('page_down')"),
    Action("page_up", in_panes("pageup"), "page up", "One page up.", do="move('page_up')"),
    Action("first", in_panes("g", "home"), "first", "To the beginning.", do="move('first')"),
    Action("last", in_panes("G", "end"), "last", "To the end.", do="move('last')"),
)


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


DOCTOR = (
    Action("doctor", at(Place.DECK, "!"), "doctor", "Look at what is missing here, and at the command that mends it."),
)
