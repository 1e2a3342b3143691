"""The actions that go about on the deck and around it; pure."""

from __future__ import annotations

from .model import Action, KeyContext, at, in_panes, needs_above, needs_beside

DECK = (
    Action(
        "zoom",
        at(KeyContext.DECK, "z"),
        "zoom",
        "Give the whole screen to one pane, and back.",
    ),
    Action("narrower", at(KeyContext.DECK, "<"), "narrower", "Make the presets narrower.", needs_beside),
    Action("wider", at(KeyContext.DECK, ">"), "wider", "Make the presets wider.", needs_beside),
    Action("lower", at(KeyContext.DECK, "-"), "lower", "Make the transcript lower.", needs_above),
    Action("higher", at(KeyContext.DECK, "+"), "higher", "Make the transcript higher.", needs_above),
    Action("reset_layout", at(KeyContext.DECK, "="), "reset layout", "Give the panes their original sizes."),
    Action(
        "theme", at(KeyContext.DECK, "T"), "theme", "Go to the next theme: dark, light, the terminal's own colours."
    ),
    Action("runs", at(KeyContext.DECK, "2"), "runs", "Go to the runs."),
    Action("transcript", at(KeyContext.DECK, "3"), "transcript", "Go to the transcript."),
    Action("next_pane", at(KeyContext.DECK, "tab"), "next pane", "Go to the next pane."),
    Action("previous_pane", at(KeyContext.DECK, "shift+tab"), "previous pane", "Go to the previous pane."),
    Action(
        "back",
        at(KeyContext.DECK, "escape"),
        "back",
        "Leave the zoom, then the pane; never quits.",
        footer=1,
        name_here=lambda context: "back" if context.zoomed else "",
    ),
    Action("help", at(KeyContext.DECK, "?"), "help", "Show every key.", footer=3),
    Action("quit", at(KeyContext.DECK, "q"), "quit", "Quit; runs continue in the background.", footer=12),
    Action(
        "palette",
        (*at(KeyContext.DECK, ":"), *at(KeyContext.APP, "ctrl+p")),
        "palette",
        "Find an action by its name.",
        do="app.command_palette",
    ),
    Action("how_to_quit", at(KeyContext.APP, "ctrl+c"), "", "Say how to quit.", do="app.how_to_quit"),
    Action("down", in_panes("j", "down"), "down", "One row down.", do="move('down')"),
    Action("up", in_panes("k", "up"), "up", "One row up.", do="move('up')"),
    Action("page_down", in_panes("pagedown"), "page down", "One page down.", do="move('page_down')"),
    Action("page_up", in_panes("pageup"), "page up", "One page up.", do="move('page_up')"),
    Action("first", in_panes("g", "home"), "first", "Go to the beginning.", do="move('first')"),
    Action("last", in_panes("G", "end"), "last", "Go to the end.", do="move('last')"),
)


_CLOSED_BY_ESCAPE = (
    KeyContext.LAUNCH,
    KeyContext.EDIT,
    KeyContext.COPY,
    KeyContext.DETAIL,
    KeyContext.CLEAN_UP,
    KeyContext.READING,
    KeyContext.PICK,
    KeyContext.ASK,
    KeyContext.CONFIRM,
    KeyContext.HELP,
)
_ONLY_READ = (KeyContext.DETAIL, KeyContext.READING, KeyContext.HELP)
"""Where there is nothing to cancel."""
_SCROLLED = (KeyContext.HELP, KeyContext.READING)
"""Where the arrows move a text, not a cursor."""


def _scrolls(key: str) -> tuple[tuple[KeyContext, str], ...]:
    return tuple((place, key) for place in _SCROLLED)


DIALOGS = (
    Action(
        "cancel",
        (*((place, "escape") for place in _CLOSED_BY_ESCAPE), *at(KeyContext.CONFIRM, "n")),
        "cancel",
        "Close the dialog without doing anything.",
        do="screen.cancel",
        footer=2,
        name_here=lambda context: "close" if context.place in _ONLY_READ else "cancel",
    ),
    Action("confirm", at(KeyContext.CONFIRM, "y"), "yes", "Do it.", do="screen.confirm", footer=1),
    Action("scroll_down", _scrolls("down"), "down", "One row down.", do="screen.move('down')"),
    Action("scroll_up", _scrolls("up"), "up", "One row up.", do="screen.move('up')"),
    Action("scroll_page_down", _scrolls("pagedown"), "page down", "One page down.", do="screen.move('page_down')"),
    Action("scroll_page_up", _scrolls("pageup"), "page up", "One page up.", do="screen.move('page_up')"),
)


DOCTOR = (
    Action(
        "doctor", at(KeyContext.DECK, "!"), "doctor", "Check what is missing here, and see the command that fixes it."
    ),
)
