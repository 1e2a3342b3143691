"""Show a text to read: every key, doctor's output, the messages since the app was opened."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from ..keys.actions import ACTIONS, BY_ID
from ..keys.command import Action, ActionContext, KeyContext
from ..keys.help import Explained, Group, first_keys, key_groups
from ..keys.keymap import bindings, keys_line, with_keys
from ..terminal.textual_internals import DialogScreen
from ..text.cells import wrap

KEY_WIDTH = 12
INDENT = KEY_WIDTH + 2
"""Cells before the text of a key."""
LEAST_WIDTH = 20
"""Minimum cells of that text in a narrow dialog."""
USUAL_WIDTH = 70
"""Cells of a dialog's line."""


class FilterInput(Input):
    """Leaves some characters to the bindings of the dialog."""

    def __init__(self, keys_first: Collection[str]) -> None:
        super().__init__(placeholder="type to filter", compact=True, id="filter")
        self._keys_first = keys_first

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return character not in self._keys_first and super().check_consume_key(key, character)


class ReadingScreen(DialogScreen[None]):
    """Scrolls by arrow keys, optionally filters by words, and closes by Escape."""

    BINDINGS = bindings(KeyContext.READING)
    CSS_PATH = "dialogs.tcss"
    AUTO_FOCUS = ""
    keys_first: ClassVar[Collection[str]] = ()
    """Characters that are keys, although the filter is a text field."""

    def __init__(
        self,
        title: str,
        entries: Sequence[Content] = (),
        *,
        empty: str = "Nothing to show.",
        note: str = "esc closes",
        filterable: bool = False,
    ) -> None:
        """Show entries, possibly of several lines. `empty` is the text without entries, `note` the lower edge."""
        super().__init__()
        self._title = title
        self._entries = tuple(entries)
        self._note = note
        self._empty = empty
        self._filterable = filterable

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="reading") as dialog:
            dialog.border_title = Content(self._title)
            if self._filterable:
                yield FilterInput(self.keys_first)
            with VerticalScroll(can_focus=False):
                yield Static(id="lines")

    def on_mount(self) -> None:
        if self._filterable:
            self.query_one("#filter", Input).focus()
        self._draw()

    def show(self, entries: Sequence[Content], note: str) -> None:
        """Replace the entries and the note."""
        self._entries, self._note = tuple(entries), note
        if self.is_mounted:  # otherwise it is drawn then
            self._draw()

    def matching(self, words: Sequence[str]) -> Content:
        """Return the text that matches these typed words, in lower case."""
        entries = [entry for entry in self._entries if all(word in entry.plain.lower() for word in words)]
        if entries:
            return Content("\n").join(entries)
        return Content("No matches." if self._entries else self._empty)

    @on(Input.Changed, "#filter")
    def show_matching(self) -> None:
        self._draw()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_move(self, where: str) -> None:
        text = self.query_one(VerticalScroll)
        page = max(1, text.size.height - 1)
        step = {"down": 1, "up": -1, "page_down": page, "page_up": -page}[where]
        text.scroll_relative(y=step, animate=False)

    def action_cancel(self) -> None:
        self.dismiss()

    def _draw(self) -> None:
        self.query_one("#reading").border_subtitle = Content(self._note)
        words = self.query_one("#filter", Input).value.lower().split() if self._filterable else []
        self.query_one("#lines", Static).update(self.matching(words))


class RefusalScreen(ReadingScreen, inherit_bindings=False):
    """Replaces a dialog that cannot open: only Escape closes it, so that keys typed for the dialog have no effect."""

    BINDINGS = bindings(KeyContext.READING)

    def __init__(self, what: str, why: str) -> None:
        """Name the dialog, and why it cannot open."""
        super().__init__(f"{what[:1].upper()}{what[1:]}: not possible now", [Content(line) for line in why.split("\n")])


class HelpScreen(ReadingScreen, inherit_bindings=False):
    """Shows the most used keys of the focused context, then all; and why an action is not possible now."""

    BINDINGS = bindings(KeyContext.HELP)
    keys_first: ClassVar[Collection[str]] = BY_ID["all_keys"].keys_in(KeyContext.HELP)

    def __init__(self, actions: Sequence[Action], action_context: ActionContext) -> None:
        """`action_context` is the state of the deck."""
        super().__init__("Keys", note=keys_line(KeyContext.HELP, actions), filterable=True)
        self._actions = actions
        self._action_context = action_context
        self._shows_all = False

    def matching(self, words: Sequence[str]) -> Content:
        width = self.query_one("#lines").content_size.width or USUAL_WIDTH
        if words or self._shows_all:
            return help_text(words, self._actions, self._action_context, width)
        return first_help(self._actions, self._action_context, width)

    def action_toggle_all(self) -> None:
        self._shows_all = not self._shows_all
        self.show_matching()

    def on_resize(self) -> None:
        """Wrap at the new width."""
        self.call_after_refresh(self._draw)


def help_text(
    words: Sequence[str] = (),
    actions: Sequence[Action] = ACTIONS,
    action_context: ActionContext | None = None,
    width: int = USUAL_WIDTH,
) -> Content:
    """List the actions that match all words, below the context of their keys, in lines of this width.

    With an `action_context`, add why an action is not possible.
    """
    groups = key_groups(actions, action_context.key_context if action_context else KeyContext.RUNS)
    lines = [
        line
        for group in groups
        for line in _group_lines(group, [row for row in group.rows if _has_words(row, group, words)], actions,
                                 action_context, width)
    ]  # fmt: skip
    return Content("\n").join(lines[1:]) if lines else Content("No matching keys.")


def first_help(actions: Sequence[Action], action_context: ActionContext, width: int = USUAL_WIDTH) -> Content:
    """List the most used keys of the key context."""
    group = first_keys(actions, action_context.key_context)
    return Content("\n").join([*_group_lines(group, group.rows, actions, action_context, width)][1:])


def _group_lines(
    group: Group, rows: Sequence[Explained], actions: Sequence[Action], context: ActionContext | None, width: int
) -> Iterator[Content]:
    """Yield an empty line, the heading and the rows; nothing without rows."""
    if rows:
        yield Content("")
        yield Content.styled(group.heading, "bold $text-muted")
    for row in rows:
        obstacle = row.action.refusal(context) if context and group.concerns_deck else ""
        yield from _explained(row, with_keys(obstacle, actions), max(LEAST_WIDTH, width - INDENT))


def _has_words(row: Explained, group: Group, words: Sequence[str]) -> bool:
    text = " ".join((row.keys, row.action.name, row.help, group.heading, *row.remarks)).lower()
    return all(word in text for word in words)


def _explained(row: Explained, obstacle: str, width: int) -> Iterator[Content]:
    style = "dim $text-muted" if obstacle else ""
    first, *more = wrap(row.help if row.keys else f"{row.action.name}: {row.help}", width)
    keys = row.keys.ljust(KEY_WIDTH - 1) + " "
    key_style = "$text-muted" if obstacle else "bold $text-primary"
    indent = " " * INDENT
    if len(keys) > KEY_WIDTH:  # they get their own line
        yield Content.assemble("  ", (keys, key_style))
        keys = " " * KEY_WIDTH
    yield Content.assemble("  ", (keys, key_style), (first, style))
    yield from (Content.styled(indent + line, style) for line in more)
    for remark in row.remarks:
        yield from (Content.styled(indent + line, "$text-accent") for line in wrap(remark, width))
    if obstacle:
        reason = wrap(f"not now: {obstacle}", width)
        yield from (Content.styled(indent + line, "$text-muted") for line in reason)
