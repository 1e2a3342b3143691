"""The columns of the run list: which are configured, which fit, and their widths; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from ..text.cells import fit
from .order import Sort


class Column(StrEnum):
    """The value is the name in the settings."""

    STATE = "state"
    PRESET = "preset"
    TASK = "task"
    NOW = "now"
    """Its current activity, or its result."""
    HOST = "host"
    """Its host; only while a run on another machine is listed."""
    AGE = "age"
    """Time since the launch."""
    ELAPSED = "elapsed"
    TOKENS = "tokens"
    COST = "cost"
    CHANGES = "changes"
    """Its changes."""
    AGENT = "agent"
    MODEL = "model"
    ID = "id"


_TEXTS = (Column.STATE, Column.PRESET, Column.TASK, Column.NOW)
_FIGURES = (Column.AGE, Column.ELAPSED, Column.TOKENS, Column.COST, Column.CHANGES)
DEFAULT = (*_TEXTS, *_FIGURES, Column.AGENT)
WITH_HOST = (*_TEXTS, Column.HOST, *_FIGURES, Column.AGENT)
"""The same while a run on another machine is listed."""
WITH_AGENT = (*_TEXTS, Column.AGENT, *_FIGURES)
"""The same while runs of several agents are listed: the agent is more important then."""
WITH_BOTH = (*_TEXTS, Column.AGENT, Column.HOST, *_FIGURES)

GUTTER = 1
"""Blank cells before each column except a state that comes first, so that texts never touch."""
LEAD = 2
"""Before all columns: whether it needs attention; the mark, or the place in a group."""
GLYPH, WORD = 1, 13
"""Cells of a state as a glyph, and with its word."""

_FIXED = {
    Column.ELAPSED: 8,
    Column.HOST: 12,
    Column.TOKENS: 6,
    Column.AGE: 5,
    Column.COST: 8,
    Column.CHANGES: 11,
    Column.ID: 7,
    Column.AGENT: 14,
    Column.MODEL: 22,
}
"""Cells, with the gutter, of columns with texts of about one length; the last to be dropped come first."""
_LEFT = {
    Column.ELAPSED: 8,
    Column.HOST: 24,
    Column.TOKENS: 16,
    Column.AGE: 42,
    Column.COST: 46,
    Column.CHANGES: 52,
    Column.ID: 46,
    Column.AGENT: 72,
    Column.MODEL: 72,
}
"""Cells that have to remain for the texts beside such a column."""
AGENT_NAME, LEFT_BY_NAME = 9, 42
"""Cells of an agent's name, with the gutter, and cells that have to remain for the texts beside it."""
LEFT_BY_CHOICE = 28
"""The maximum of the same if you have chosen the columns."""
ROOMY = 80
"""Cells for the texts from which a preset gets more of them."""
LEFT_BY_WORD = 60
"""Cells that have to remain for the texts beside the word of a state."""
LEAST_FOR_NOW = 40
"""Cells for the texts from which a run's activity fits."""
LEAST_PRESET, MOST_PRESET, ROOMY_PRESET = 7, 16, 24

RIGHT = frozenset((Column.AGE, Column.ELAPSED, Column.TOKENS, Column.COST, Column.CHANGES))
"""Columns of figures, aligned to the right."""

_HEADINGS = {Column.STATE: "", Column.ELAPSED: "time", Column.TOKENS: "tok"}
_SORTS = {
    Column.STATE: Sort.STATE,
    Column.PRESET: Sort.PRESET,
    Column.TASK: Sort.TASK,
    Column.HOST: Sort.HOST,
    Column.AGE: Sort.AGE,
    Column.ELAPSED: Sort.ELAPSED,
    Column.TOKENS: Sort.TOKENS,
    Column.COST: Sort.COST,
    Column.CHANGES: Sort.CHANGES,
    Column.AGENT: Sort.AGENT,
    Column.MODEL: Sort.MODEL,
    Column.ID: Sort.AGE,
}
RISING, FALLING = "↑", "↓"
"""Beside the heading of the sort: the smallest, or the first of the alphabet, is above; or below."""


def chosen_columns(names: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns named in the settings, in their order; the usual ones if none are."""
    return tuple(map(Column, names)) or DEFAULT


_USUAL = {(False, False): DEFAULT, (True, False): WITH_HOST, (False, True): WITH_AGENT, (True, True): WITH_BOTH}


@lru_cache(16)
def for_listed(wanted: tuple[Column, ...], *, remote: bool, agents: bool = False) -> tuple[Column, ...]:
    """Return the columns for the listed runs: `remote` if one is on another machine, `agents` if they have several
    agents.
    """
    if wanted == DEFAULT:
        return _USUAL[remote, agents]
    return wanted if remote else tuple(column for column in wanted if column is not Column.HOST) or DEFAULT


class Place(NamedTuple):
    """The position of a column in each row."""

    column: Column
    start: int
    width: int
    """With its gutter."""


class Layout(NamedTuple):
    places: tuple[Place, ...]
    width: int

    def place(self, column: Column) -> Place | None:
        return next((place for place in self.places if place.column is column), None)

    def column_at(self, x: int) -> Column | None:
        return next((place.column for place in self.places if place.start <= x < place.start + place.width), None)


@lru_cache(64)
def layout(width: int, wanted: tuple[Column, ...] = DEFAULT, *, words: bool = False) -> Layout:
    """Return the columns that fit into rows of this width; `words` allows words for states if they fit."""
    gutter = 0 if wanted[0] is Column.STATE else GUTTER
    state = gutter + GLYPH if Column.STATE in wanted else 0
    room = max(0, width - LEAD - state)
    shown: dict[Column, int] = {}
    for column, cost, left in _needs(wanted):
        if column in wanted and room - cost >= left:
            shown[column] = shown.get(column, 0) + cost
            room -= cost
    if state and words and room - (WORD - GLYPH) >= LEFT_BY_WORD:
        state += WORD - GLYPH
        room -= WORD - GLYPH
    shown |= _texts(room, [column for column in wanted if column in (Column.PRESET, Column.TASK, Column.NOW)])
    if state:
        shown[Column.STATE] = state
    places: list[Place] = []
    start = LEAD
    for column in wanted:
        if column in shown:
            places.append(Place(column, start, shown[column]))
            start += shown[column]
    return Layout(tuple(places), width)


def _needs(wanted: tuple[Column, ...]) -> Iterator[tuple[Column, int, int]]:
    """Yield the columns of about one length, the most important first: each with its cells, and the cells that have to
    remain for the texts beside it. A column that comes twice gets more cells.
    """
    if wanted not in _USUAL.values():
        yield from ((column, cost, min(_LEFT[column], LEFT_BY_CHOICE)) for column, cost in _FIXED.items())
        return
    has_name = wanted in (WITH_AGENT, WITH_BOTH)
    for column, cost in _FIXED.items():
        if column is Column.COST and has_name:
            yield Column.AGENT, AGENT_NAME, LEFT_BY_NAME
        yield column, cost - AGENT_NAME if column is Column.AGENT and has_name else cost, _LEFT[column]


def _texts(room: int, wanted: Sequence[Column]) -> dict[Column, int]:
    """Divide the remaining cells among the columns of texts."""
    if Column.NOW in wanted and len(wanted) > 1 and room < LEAST_FOR_NOW:
        wanted = [column for column in wanted if column is not Column.NOW]
    long = [column for column in wanted if column is not Column.PRESET]
    shown: dict[Column, int] = {}
    if Column.PRESET in wanted:
        most = ROOMY_PRESET if room >= ROOMY else MOST_PRESET
        shown[Column.PRESET] = min(room, max(LEAST_PRESET, min(most, room // 4))) if long else room
        room -= shown[Column.PRESET]
    for number, column in enumerate(long):
        shown[column] = room // (len(long) - number)
        room -= shown[column]
    return shown


def headings(shown: Layout, sort: Sort, *, backwards: bool) -> str:
    """Return the line above the rows, with a sign beside the heading of the sort."""
    line = " " * LEAD
    for column, _, width in shown.places:
        name = _HEADINGS.get(column, column.value)
        if sort_of(column) is sort and (column is not Column.ID):
            name += FALLING if sort.falls != backwards else RISING
        line += cell(name, width, column)
    return line


def sort_of(column: Column) -> Sort | None:
    """Return the sort for a click on a heading."""
    return _SORTS.get(column)


def cell(text: str, width: int, column: Column) -> str:
    """Return a text as wide as its column, with its gutter."""
    if column is Column.STATE:
        word = width >= WORD
        gutter = " " * (width - (WORD if word else GLYPH))
        return gutter + (fit(text, WORD) if word else fit(text[:GLYPH], GLYPH))
    if width <= GUTTER:
        return " " * width
    return " " * GUTTER + fit(text, width - GUTTER, right=column in RIGHT)
