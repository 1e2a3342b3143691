"""Show a text that is only read: what doctor says, the messages of the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ..actions import KeyContext, bindings


class ReadingScreen(ModalScreen[None]):
    """Scrolls by the arrows, is narrowed by words where that is wanted, and goes by Escape."""

    BINDINGS = bindings(KeyContext.READING)
    CSS_PATH: ClassVar = ["dialogs.tcss", "reading.tcss"]
    AUTO_FOCUS = ""

    def __init__(
        self,
        title: str,
        entries: Sequence[Content] = (),
        *,
        empty: str = "There is nothing to show.",
        filterable: bool = False,
    ) -> None:
        """Show entries; one may have several lines, and a filter keeps or leaves it whole."""
        super().__init__()
        self._title = title
        self._entries = tuple(entries)
        self._note = ""
        self._empty = empty
        self._filterable = filterable

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="reading") as dialog:
            dialog.border_title = Content(self._title)
            if self._filterable:
                yield Input(placeholder="filter", compact=True, id="filter")
            with VerticalScroll(can_focus=False):
                yield Static(id="lines")

    def on_mount(self) -> None:
        if self._filterable:
            self.query_one("#filter", Input).focus()
        self._draw()

    def show(self, entries: Sequence[Content], note: str = "") -> None:
        """Put other entries in their place, and `note` at the lower edge; what was filtered stays so."""
        self._entries, self._note = tuple(entries), note
        if self.is_mounted:  # else it is drawn then
            self._draw()

    @on(Input.Changed, "#filter")
    def show_matching(self) -> None:
        self._draw()
        self._text.scroll_home(animate=False)

    def action_move(self, where: str) -> None:
        page = max(1, self._text.size.height - 1)
        step = {"down": 1, "up": -1, "page_down": page, "page_up": -page}[where]
        self._text.scroll_relative(y=step, animate=False)

    def action_cancel(self) -> None:
        self.dismiss()

    @property
    def _text(self) -> VerticalScroll:
        return self.query_one(VerticalScroll)

    def _draw(self) -> None:
        self.query_one("#reading").border_subtitle = Content(self._note or "esc closes")
        words = self.query_one("#filter", Input).value.lower().split() if self._filterable else []
        matching = [entry for entry in self._entries if all(word in entry.plain.lower() for word in words)]
        nothing = Content("Nothing matches." if self._entries and words else self._empty)
        self.query_one("#lines", Static).update(Content("\n").join(matching) if matching else nothing)
