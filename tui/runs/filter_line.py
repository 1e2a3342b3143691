"""The line for typing a filter of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from ..widgets.prompt_line import PromptLine
from .filter import EVERYTHING, Filter, parse_filter

if TYPE_CHECKING:
    from .list import RunList


class FilterLine(PromptLine):
    """Filters while you type; Escape restores the previous filter and run."""

    DEFAULT_CSS = """
    FilterLine {
        height: auto;
        layout: grid;
        grid-size: 2;
        grid-columns: 2 1fr;
        grid-rows: auto;
        & > #note { column-span: 2; width: 1fr; max-width: 100%; height: auto; max-height: 4; text-wrap: wrap; }
    }
    """
    PLACEHOLDER = "words  status:failed,running  preset:x  is:unread  age:<1d  cost:>1  text:x  -not"

    def __init__(self, runs: RunList) -> None:
        super().__init__()
        self._runs = runs
        self._former = ""
        self._former_run: str | None = None

    def open(self) -> None:
        """Take the focus, with the present filter to be changed."""
        self._former, self._former_run = self._runs.listing.filter.text, self._runs.selected
        self.show(f"{self._former} " if self._former else "")  # the typed text becomes a further term
        self._say(EVERYTHING)

    def typed(self, text: str) -> None:
        self._say(self._runs.filter_by(text, prefer=self._former_run))

    def action_keep(self) -> None:
        """Keep the filter; an invalid one has to be corrected first."""
        if parse_filter(self.field.value).error:
            self.app.bell()
        else:
            self.close()
            self._runs.focus()

    def action_drop(self) -> None:
        self._runs.filter_by(self._former, prefer=self._former_run)
        self.close()
        self._runs.focus()

    def left(self) -> None:
        if parse_filter(self.field.value).error:
            self._runs.filter_by(self._former, prefer=self._runs.selected)
        self.close()

    def close(self) -> None:
        super().close()
        self._runs.keep_layout()

    def _say(self, parsed: Filter) -> None:
        """Show a filter's error below the field."""
        note = self.query_one("#note", Static)
        note.update(Content(f"! {parsed.error.advice}" if parsed.error else ""))
        note.display = parsed.error is not None
