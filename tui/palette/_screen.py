"""The screen of the palette: the input above, the offers below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings, keys_line
from ..runs.filter import parse_filter, split_terms
from ..terminal.textual_internals import DialogScreen
from ..text.cells import fit, wrap
from ..widgets.line_view import RowList
from ..widgets.prompt_input import PromptInput
from ._offers import Offer, matching, typed_filter

KIND = 8
"""Cells of the kind, with the space after it."""
TITLE = 33
"""Cells of a title, with the space after it: built-in actions fit."""


class OfferList(RowList, can_focus=False):
    DEFAULT_CSS = "OfferList > .row-list--cursor { background: $primary 25%; }"

    def __init__(self) -> None:
        super().__init__(id="offers")
        self._offers: Sequence[Offer] = ()
        self._why_empty = ""

    @property
    def row_count(self) -> int:
        return len(self._offers)

    @property
    def chosen(self) -> Offer | None:
        return self._offers[self.cursor] if self.cursor < len(self._offers) else None

    def show(self, offers: Sequence[Offer], why_empty: str = "") -> None:
        """Show these offers; `why_empty` is shown without any."""
        self._offers, self._why_empty, self.cursor = offers, why_empty, 0
        self.set_height()
        self.scroll_to(y=0, animate=False)
        self.refresh()

    def empty_lines(self) -> list[str]:
        return ["No matches.", *wrap(self._why_empty, max(20, self.shown_width))]

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        offer = self._offers[row]
        return [
            (fit(offer.kind, KIND - 1) + " ", "row-list--muted"),
            (fit(offer.title, TITLE - 1) + " ", ""),
            (fit(offer.detail, width - KIND - TITLE), "row-list--muted"),
        ]


class PaletteScreen(DialogScreen[Offer | None]):
    """Returns the chosen offer."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "palette.tcss"]
    BINDINGS = bindings(KeyContext.PALETTE)
    AUTO_FOCUS = ""

    def __init__(self, offers: Sequence[Offer], actions: Sequence[Action]) -> None:
        super().__init__()
        self._offers = offers
        self._actions = actions

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="palette") as dialog:
            dialog.border_title = "Find anything"
            dialog.border_subtitle = Content(keys_line(KeyContext.PALETTE, self._actions))
            yield PromptInput(placeholder="action, run, preset, filter or setting", compact=True, id="sought")
            yield OfferList()

    def on_mount(self) -> None:
        self.query_one(PromptInput).focus()
        self._list.show(self._offers)

    @property
    def _list(self) -> OfferList:
        return self.query_one(OfferList)

    @on(Input.Changed)
    def narrow(self, event: Input.Changed) -> None:
        offers = matching(self._offers, event.value)
        terms, _ = split_terms(event.value)
        error = parse_filter(event.value).error
        if terms and not error and event.value.strip() not in (o.key for o in offers):
            offers = [*offers, typed_filter(event.value.strip())]
        self._list.show(offers, error.advice if error else "")

    def action_move(self, where: str) -> None:
        self._list.action_move(where)

    @on(Input.Submitted)
    @on(RowList.Chosen)
    def action_choose(self) -> None:
        if (offer := self._list.chosen) is not None:
            self.dismiss(offer)

    def action_cancel(self) -> None:
        self.dismiss(None)
