"""Every key, from the registry, with a filter."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ..actions import ACTIONS, Action, Place, bindings, key_label
from ..wrapping import wrap

KEY_WIDTH = 12
HELP_WIDTH = 56
"""Cells that the dialog leaves beside the keys."""


class HelpScreen(ModalScreen[None]):
    BINDINGS = bindings(Place.HELP)

    def __init__(self, actions: Sequence[Action] = ACTIONS) -> None:
        super().__init__()
        self._actions = actions

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Keys"
            dialog.border_subtitle = "esc closes"
            yield Input(placeholder="filter", compact=True, id="filter")
            with VerticalScroll(can_focus=False):
                yield Static(help_text("", self._actions), id="keys")

    def on_mount(self) -> None:
        self.query_one("#filter", Input).focus()

    @on(Input.Changed, "#filter")
    def show_matching(self, event: Input.Changed) -> None:
        self.query_one("#keys", Static).update(help_text(event.value, self._actions))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_move(self, where: str) -> None:
        keys = self.query_one(VerticalScroll)
        page = max(1, keys.size.height - 1)
        step = {"down": 1, "up": -1, "page_down": page, "page_up": -page}[where]
        keys.scroll_relative(y=step, animate=False)

    def action_cancel(self) -> None:
        self.dismiss()


def help_text(words: str, actions: Sequence[Action] = ACTIONS) -> Content:
    """List the actions that hold all the words, under the place where their keys work."""
    wanted = words.lower().split()
    lines: list[Content] = []
    for place in Place:
        rows: list[Content] = []
        for action in actions:
            keys = " ".join(key_label(key) for key in action.keys_in(place))
            said = f"{keys} {action.name} {action.help} {place.value}".lower()
            if keys and all(word in said for word in wanted):
                first, *more = wrap(action.help, HELP_WIDTH)
                rows.append(Content.assemble("  ", (keys.ljust(KEY_WIDTH), "bold $text-primary"), first))
                rows += [Content(" " * (KEY_WIDTH + 2) + row) for row in more]
        if rows:
            lines += [Content.styled(place.value, "$text-muted"), *rows]
    return Content("\n").join(lines) if lines else Content("No key has to do with that.")
