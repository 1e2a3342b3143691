"""The actions of the detail screen of one run; pure."""

from __future__ import annotations

from .model import Action, Place, at
from .needs_part import needs_run

_TABS = {
    "transcript": "The end of what it did, as a person reads it.",
    "answer": "The answer, or what there is of it so far.",
    "prompt": "What the child read, and its system prompt.",
    "facts": "What was decided before the start, and how it ended.",
    "usage": "Tokens and cost of each message.",
    "files": "The files of the run.",
    "events": "The last events, as they are written.",
}

DETAIL = (
    Action(
        "detail",
        at(Place.DECK, "i"),
        "detail",
        "Open the highlighted run: why it is not done, answer, prompt, facts, usage, files.",
        needs_run,
        footer=13,
    ),
    *(
        Action(f"tab_{name}", at(Place.DETAIL, str(number)), name, sentence, do=f"screen.show_tab('{name}')")
        for number, (name, sentence) in enumerate(_TABS.items(), start=1)
    ),
    Action("next_tab", at(Place.DETAIL, "right", "tab"), "next tab", "Go to the next tab.", do="screen.turn(1)"),
    Action(
        "previous_tab",
        at(Place.DETAIL, "left", "shift+tab"),
        "previous tab",
        "Go to the tab before.",
        do="screen.turn(-1)",
    ),
    Action(
        "open_shown",
        at(Place.DETAIL, "enter"),
        "open",
        "Open what is shown: the transcript on the deck, a file in your pager.",
        do="screen.open_shown",
        footer=3,
    ),
    Action(
        "copy_shown",
        at(Place.DETAIL, "y"),
        "copy",
        "Copy what the tab shows, or the path of the highlighted file.",
        do="screen.copy_shown",
        footer=4,
    ),
    *(
        Action(f"detail_{where}", at(Place.DETAIL, *keys), name, sentence, do=f"screen.move('{where}')")
        for where, keys, name, sentence in (
            ("down", ("j", "down"), "down", "One row down."),
            ("up", ("k", "up"), "up", "One row up."),
            ("page_down", ("pagedown",), "page down", "One page down."),
            ("page_up", ("pageup",), "page up", "One page up."),
            ("first", ("g", "home"), "first", "To the beginning."),
            ("last", ("G", "end"), "last", "To the end."),
        )
    ),
)
