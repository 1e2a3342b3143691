"""Every key, from the registry, with a filter; what is impossible now says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ..actions import ACTIONS, Action, ActionContext, KeyContext, bindings, keys_line, said
from ..actions.help import Explained, Group, key_groups
from ..text.cells import wrap

KEY_WIDTH = 12
HELP_WIDTH = 56
"""Cells that the dialog leaves beside the keys."""

NOWHERE = ActionContext()


class HelpScreen(ModalScreen[None]):
    BINDINGS = bindings(KeyContext.HELP)
    CSS_PATH = "dialogs.tcss"

    def __init__(self, actions: Sequence[Action] = ACTIONS, action_context: ActionContext = NOWHERE) -> None:
        """`action_context` is that of the deck, from which it was opened."""
        super().__init__()
        self._actions = actions
        self._situation = action_context

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="help") as dialog:
            dialog.border_title = "Keys"
            dialog.border_subtitle = Content(keys_line(KeyContext.HELP, self._actions))
            yield Input(placeholder="type to filter", compact=True, id="filter")
            with VerticalScroll(can_focus=False):
                yield Static(help_text("", self._actions, self._situation), id="keys")

    def on_mount(self) -> None:
        self.query_one("#filter", Input).focus()

    @on(Input.Changed, "#filter")
    def show_matching(self, event: Input.Changed) -> None:
        self.query_one("#keys", Static).update(help_text(event.value, self._actions, self._situation))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_move(self, where: str) -> None:
        keys = self.query_one(VerticalScroll)
        page = max(1, keys.size.height - 1)
        step = {"down": 1, "up": -1, "page_down": page, "page_up": -page}[where]
        keys.scroll_relative(y=step, animate=False)

    def action_cancel(self) -> None:
        self.dismiss()


def help_text(
    words: str,
    actions: Sequence[Action] = ACTIONS,
    action_context: ActionContext | None = None,
) -> Content:
    """List the actions that hold all the words, under the place where their keys work.

    In a action_context, those that are impossible say why.
    """
    wanted = words.lower().split()
    lines: list[Content] = []
    for group in key_groups(actions, action_context.place if action_context else KeyContext.RUNS):
        rows = [row for row in group.rows if _holds(row, group, wanted)]
        if rows:
            lines += [Content(""), Content.styled(group.heading, "bold $text-muted")]
            for row in rows:
                obstacle = row.action.refusal(action_context) if action_context and group.concerns_deck else ""
                lines += _explained(row, said(obstacle, actions))
    return Content("\n").join(lines[1:]) if lines else Content("No key matches.")


def _holds(row: Explained, group: Group, wanted: Sequence[str]) -> bool:
    text = f"{row.keys} {row.action.name} {row.help} {group.heading}".lower()
    return all(word in text for word in wanted)


def _explained(row: Explained, obstacle: str) -> Iterator[Content]:
    style = "dim $text-muted" if obstacle else ""
    first, *more = wrap(row.help, HELP_WIDTH)
    keys = row.keys.ljust(KEY_WIDTH - 1) + " "
    key_style = "$text-muted" if obstacle else "bold $text-primary"
    indent = " " * (KEY_WIDTH + 2)
    yield Content.assemble("  ", (keys, key_style), (first, style))
    yield from (Content.styled(indent + line, style) for line in more)
    if obstacle:
        reason = wrap(f"not now: {obstacle}", HELP_WIDTH)
        yield from (Content.styled(indent + line, "$text-muted") for line in reason)
