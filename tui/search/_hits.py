"""The hits of a search as rows: date, preset, place and the line with the match in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from ...core.errors import UsageError
from ...core.run.describe import moment
from ...core.run.model import readable_preset
from ...core.search.pattern import Pattern
from ...core.search.scan import Found, Hit
from ...core.text.plain import one_line
from ..runs.filter import EVERYTHING, LONGEST, Filter, parse_filter, split_terms
from ..text.cells import fit
from ..widgets.line_view import RowList

DATE, PRESET, PLACE = 12, 14, 11
"""Cells, each with the space after it."""
WIDE = 70
"""Cells from which the preset fits."""

_MUTED, _MATCH = "row-list--muted", "row-list--running"


class HitRow(NamedTuple):
    run_id: str
    preset: str
    hit: Hit


def rows_of(run_hits: Found) -> list[HitRow]:
    return [HitRow(run_hits.run_id, readable_preset(run_hits.preset), hit) for hit in run_hits.hits]


class HitList(RowList, can_focus=False):
    """Grows at its end during the search; the cursor stays in place."""

    DEFAULT_CSS = "HitList > .row-list--cursor { background: $primary 25%; }"

    def __init__(self) -> None:
        super().__init__(id="hits")
        self._rows: list[HitRow] = []
        self._empty = ""

    @property
    def row_count(self) -> int:
        return len(self._rows)

    @property
    def chosen(self) -> HitRow | None:
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    @property
    def run_count(self) -> int:
        return len({row.run_id for row in self._rows})

    def begin(self, empty: str) -> None:
        """Remove all hits, and show this text."""
        self._rows, self._empty, self.cursor = [], empty, 0
        self.set_height()
        self.scroll_to(y=0, animate=False)
        self.refresh()

    def extend(self, rows: Sequence[HitRow]) -> None:
        self._rows += rows
        self.set_height()
        self.refresh()

    def empty_lines(self) -> list[str]:
        return self._empty.split("\n")

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        _, preset, hit = self._rows[row]
        when = moment(hit.at)
        cells = [(fit(f"{when.astimezone():%m-%d %H:%M}" if when else "", DATE - 1) + " ", _MUTED)]
        if width >= WIDE:
            cells.append((fit(preset, PRESET - 1) + " ", ""))
        cells.append((fit(hit.place, PLACE - 1) + " ", _MUTED))
        return [*cells, *_line(hit, width - sum(len(text) for text, _ in cells))]


def _line(hit: Hit, room: int) -> list[tuple[str, str]]:
    """Return the line with its matches coloured; cut its beginning if the first match would be hidden."""
    begin = 0
    if hit.spans and hit.spans[0][1] > room:
        begin = max(0, hit.spans[0][0] - room // 3)
    parts = [("…", _MUTED)] if begin else []
    for first, last in hit.spans:
        parts += [(hit.line[begin:first], ""), (hit.line[max(begin, first) : last], _MATCH)]
        begin = max(begin, last)
    return [*parts, (hit.line[begin:], "")]


# --- the query -------------------------------------------------------------------------------------------------------


class Query(Struct, frozen=True):
    """What to search for, and in which runs."""

    pattern: Pattern | None = None
    """None if the text is empty or invalid."""
    runs: Filter = EVERYTHING
    error: str = ""

    @property
    def words(self) -> str:
        """The search text for the transcript; empty for an expression."""
        return "" if self.pattern is None or self.pattern.is_regex else self.pattern.text


def parse_query(text: str) -> Query:
    """Parse a typed query; every text has a result.

    Known `key:value` terms choose runs, the rest is a literal text; a capital letter makes it case-sensitive. Between
    two slashes it is an expression.
    """
    terms, sought = split_terms(one_line(text, LONGEST))
    runs = parse_filter(terms)
    if runs.error is not None:
        return Query(runs=runs, error=runs.error.advice)
    if not sought or sought in ("/", "//"):
        return Query(runs=runs)
    is_regex = len(sought) > 2 and sought[0] == sought[-1] == "/"
    try:
        pattern = pattern_of(sought[1:-1] if is_regex else sought, regex=is_regex)
    except UsageError as error:
        return Query(runs=runs, error=error.what)
    return Query(pattern, runs)


def pattern_of(text: str, *, regex: bool = False) -> Pattern:
    """Return the pattern of a text; a capital letter makes it case-sensitive. Raises UsageError."""
    return Pattern(text, regex=regex, ignore_case=text == text.lower())
