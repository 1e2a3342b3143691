"""The line in which a filter of the runs is written; they are filtered as it is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Horizontal
from textual.content import Content
from textual.events import DescendantBlur, Paste
from textual.widgets import Input, Static

from ...core.text.plain import one_line
from ..actions import KeyContext, bindings
from .filter import EVERYTHING, LONGEST, Filter, parse_filter

if TYPE_CHECKING:
    from .list import RunList

EXAMPLES = "words  status:failed,running  preset:x  is:unseen  -not"


class FilterInput(Input):
    """Takes one line of plain text."""

    def on_paste(self, event: Paste) -> None:
        # Input inserts the first line of what is pasted, as it is.
        event.text = one_line(event.text, LONGEST)


class FilterLine(Horizontal):
    """Open while a filter is written; enter keeps what is written, escape brings back what stood before."""

    BINDINGS = bindings(KeyContext.FILTER)
    DEFAULT_CSS = """
    FilterLine {
        display: none;
        height: 1;
        padding: 0 1;
        background: $surface;
        & > #filter-sign { width: 2; color: $text-primary; }
        & > FilterInput { width: 1fr; background: $surface; }
        & > #filter-note { width: auto; max-width: 70%; color: $text-error; }
        & > #filter-note { text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, runs: RunList) -> None:
        super().__init__()
        self._runs = runs
        self._former = ""
        self._former_run: str | None = None

    @property
    def _input(self) -> FilterInput:
        return self.query_one(FilterInput)

    def open(self) -> None:
        """Take the keys, and go on from the filter that stands."""
        if not self.children:  # not at the start: a field costs the first paint more than the line is worth there
            field = FilterInput(placeholder=EXAMPLES, compact=True, select_on_focus=False, id="run-filter")
            self.mount(Static("/", id="filter-sign"), field, Static(id="filter-note"))
        self._former, self._former_run = self._runs.listing.filter.text, self._runs.selected
        self._write(self._former)
        self._tell(EVERYTHING)
        self.display = True
        self._input.focus()

    @on(Input.Changed)
    def filter_runs(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self._tell(self._runs.filter_by(event.value, prefer=self._former_run))

    @on(Input.Submitted)
    def keep_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep()

    def action_keep(self) -> None:
        """Let the filter stand; one that cannot be understood has to be mended first."""
        if parse_filter(self._input.value).problem:
            self.app.bell()
        else:
            self._close()

    def action_drop(self) -> None:
        """Bring back the filter that stood before, and the run that was highlighted."""
        self._runs.filter_by(self._former, prefer=self._former_run)
        self._close()

    def on_descendant_blur(self, _: DescendantBlur) -> None:
        """Keep what was written when the keys went to another pane; a dialog or another window gives them back."""
        if not self.display or not self.app.app_focus or self.app.screen is not self.screen:
            return
        if parse_filter(self._input.value).problem:
            self._runs.filter_by(self._former, prefer=self._runs.selected)
        self._close(focus=False)

    def _tell(self, filtered: Filter) -> None:
        self.query_one("#filter-note", Static).update(Content(filtered.problem and f"  ! {filtered.problem}"))

    def _write(self, text: str) -> None:
        with self._input.prevent(Input.Changed):
            self._input.value = text
        self._input.cursor_position = len(text)

    def _close(self, *, focus: bool = True) -> None:
        self.display = False
        if memory := self._runs.memory:
            self._runs.run_worker(memory.keep(self._runs.list_layout), exit_on_error=False)
        if focus:
            self._runs.focus()
