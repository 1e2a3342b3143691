"""The keys that dialogs share: close, confirm and scroll."""

from __future__ import annotations

from ..keys.command import Action, KeyContext, at, moves

LAUNCH, EDIT, COPY, CLEAN_UP = KeyContext.LAUNCH, KeyContext.EDIT, KeyContext.COPY, KeyContext.CLEAN_UP
DETAIL, TILES, COMPARE = KeyContext.DETAIL, KeyContext.TILES, KeyContext.COMPARE
HOSTS, CHANGES, FIND, PALETTE = KeyContext.HOSTS, KeyContext.CHANGES, KeyContext.FIND, KeyContext.PALETTE
READING, CONFIRM, HELP = KeyContext.READING, KeyContext.CONFIRM, KeyContext.HELP

_CLOSED_BY_ESCAPE = (
    LAUNCH,
    EDIT,
    COPY,
    DETAIL,
    CLEAN_UP,
    READING,
    FIND,
    PALETTE,
    TILES,
    COMPARE,
    CHANGES,
    HOSTS,
    KeyContext.PICK,
    KeyContext.ASK,
    CONFIRM,
    HELP,
)
_ONLY_READ = (DETAIL, READING, FIND, TILES, COMPARE, CHANGES, HOSTS, HELP)
"""Dialogs without anything to cancel."""


class DialogKeys:
    in_dialogs = (
        Action("cancel",
               (*((key_context, "escape") for key_context in _CLOSED_BY_ESCAPE), *at(CONFIRM, "n"),
                *at(TILES, "q", "W"), *at(COMPARE, "q", "V"), *at(HOSTS, "q")), "cancel",
               "Close the dialog without changing anything.", do="screen.cancel", footer=2,
               name_here=lambda context: "close" if context.key_context in _ONLY_READ else "cancel"),
        Action("confirm", at(CONFIRM, "y"), "yes", "Confirm the action.", do="screen.confirm", footer=1),
        Action("edit_commit", at(CONFIRM, "e"), "edit message", do="screen.edit_message",
               help="Edit the commit message in your editor ($EDITOR) before the commit is made."),
        Action("all_keys", at(HELP, "?"), "all keys", do="screen.toggle_all", footer=1, first=True,
               help="Show all keys, or only the most used ones of the place."),
        *moves((HELP, READING, FIND, PALETTE), "screen.move", "scroll_", in_text=True),
    )  # fmt: skip
