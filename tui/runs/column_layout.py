"""The columns of the run list on the screen: which ones there is room for, and how wide each is; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ...core.run.columns import (
    AGE,
    AGENT,
    COLUMNS,
    ID,
    NOW,
    PRESET,
    STATE,
    TASK,
    RunColumn,
    Sort,
    columns_named,
)
from ..text.cells import fit
from ._extent import FULL, LONGEST_TASK, Extent

WITH_HOST = tuple(column for column in COLUMNS if column.is_usual)
"""The usual columns while a run of another machine is listed."""
DEFAULT = tuple(column for column in WITH_HOST if not column.needs_remote)
"""The usual columns."""


def _agent_first(columns: tuple[RunColumn, ...]) -> tuple[RunColumn, ...]:
    """Put the agent behind the texts."""
    others = [column for column in columns if column is not AGENT]
    behind = others.index(NOW) + 1
    return (*others[:behind], AGENT, *others[behind:])


WITH_AGENT = _agent_first(DEFAULT)
"""The same while runs of several agents are listed: the agent is more important then."""
WITH_BOTH = _agent_first(WITH_HOST)

GUTTER = 1
"""Blank cells before each column except a state that comes first, so that texts never touch."""
LEAD = 2
"""Before all columns: whether it needs attention; the mark, or the place in a group."""
GLYPH, WORD = 1, 13
"""Cells of a state as a glyph, and with its word."""

_RANKED = sorted((column for column in COLUMNS if column.cells), key=lambda column: column.rank)
"""Columns whose texts have about one length; the columns that are dropped last come first."""
AGENT_NAME, LEFT_BY_NAME = AGENT.brief_to, 42
"""Cells of an agent's name, with the gutter, and cells that have to remain for the texts beside it."""
LEFT_BY_CHOICE = 28
"""The maximum of the same if you have chosen the columns."""
ROOMY = 80
"""Cells for the texts from which a preset gets more of them."""
LEFT_BY_WORD = 60
"""Cells that have to remain for the texts beside the word of a state."""
LEAST_FOR_NOW = 40
"""Cells for the texts from which a run's activity fits."""
LEAST_NOW, SHARE_OF_NOW = 16, 1 / 3
"""Cells of the activity, and its share of the cells for both texts, until the longest task fits."""
LEAST_TASK = 12
LEAST_PRESET, MOST_PRESET, ROOMY_PRESET = 7, 16, 24

RISING, FALLING = "↑", "↓"
"""Beside the heading of the sort: the smallest, or the first of the alphabet, is above; or below."""


def chosen_columns(names: Sequence[str]) -> tuple[RunColumn, ...]:
    """Return the columns named in the settings, in their order; the usual ones if none are."""
    return columns_named(names) or DEFAULT


_USUAL = {(False, False): DEFAULT, (True, False): WITH_HOST, (False, True): WITH_AGENT, (True, True): WITH_BOTH}


@lru_cache(16)
def for_listed(columns: tuple[RunColumn, ...], *, remote: bool, agents: bool = False) -> tuple[RunColumn, ...]:
    """Return the columns for the listed runs: `remote` if one is on another machine, `agents` if they have several
    agents.
    """
    if columns == DEFAULT:
        return _USUAL[remote, agents]
    return columns if remote else tuple(column for column in columns if not column.needs_remote) or DEFAULT


class ColumnSpan(NamedTuple):
    """The cells of a column in each row."""

    column: RunColumn
    start: int
    width: int
    """With its gutter."""


class Layout(NamedTuple):
    spans: tuple[ColumnSpan, ...]
    width: int
    brief: frozenset[str] = frozenset()
    """Names of the columns that have room for a few words only."""
    has_word: bool = False
    """Whether a state has its word."""

    def span_of(self, column: RunColumn) -> ColumnSpan | None:
        return next((span for span in self.spans if span.column is column), None)

    def column_at(self, x: int) -> RunColumn | None:
        return next((span.column for span in self.spans if span.start <= x < span.start + span.width), None)


@lru_cache(64)
def layout(
    width: int, columns: tuple[RunColumn, ...] = DEFAULT, extent: Extent = FULL, *, words: bool = False
) -> Layout:
    """Return the columns that fit into rows of this width; `words` allows words for states if they fit.

    Empty columns are left out, unless all are empty.
    """
    filled = tuple(column for column in columns if column not in extent.empty) or columns
    gutter = 0 if filled[0] is STATE else GUTTER
    state = gutter + GLYPH if STATE in filled else 0
    room = max(0, width - LEAD - state)
    shown: dict[RunColumn, int] = {}
    for column, cost, reserve in _needs(columns):
        if column in filled and room - cost >= reserve:
            shown[column] = shown.get(column, 0) + cost
            room -= cost
    if state and words and room - (WORD - GLYPH) >= LEFT_BY_WORD:
        state += WORD - GLYPH
        room -= WORD - GLYPH
    shown |= _texts(room, [column for column in filled if not column.cells and column is not STATE], extent)
    if state:
        shown[STATE] = state
    spans: list[ColumnSpan] = []
    start = LEAD
    for column in filled:
        if column in shown:
            spans.append(ColumnSpan(column, start, shown[column]))
            start += shown[column]
    brief = frozenset(column.name for column, _, width in spans if width <= column.brief_to)
    return Layout(tuple(spans), width, brief, has_word=state >= WORD)


def _needs(columns: tuple[RunColumn, ...]) -> Iterator[tuple[RunColumn, int, int]]:
    """Yield the columns of about one length, the most important first: each with its cells, and the cells that have to
    remain for the texts beside it. A column that comes twice gets more cells.
    """
    if columns not in _USUAL.values():
        yield from ((column, column.cells, min(column.left, LEFT_BY_CHOICE)) for column in _RANKED)
        return
    has_name = columns in (WITH_AGENT, WITH_BOTH)
    for column in _RANKED:
        if column is AGE and has_name:
            yield AGENT, AGENT_NAME, LEFT_BY_NAME
        yield column, column.cells - AGENT_NAME if column is AGENT and has_name else column.cells, column.left


def _texts(room: int, columns: Sequence[RunColumn], extent: Extent) -> dict[RunColumn, int]:
    """Divide the remaining cells among the columns of texts; the task gets most of them, up to the longest task."""
    if NOW in columns and len(columns) > 1 and room < LEAST_FOR_NOW:
        columns = [column for column in columns if column is not NOW]
    long = [column for column in columns if column is not PRESET]
    shown: dict[RunColumn, int] = {}
    if PRESET in columns:
        most = min(ROOMY_PRESET if room >= ROOMY else MOST_PRESET, extent.preset + GUTTER)
        shown[PRESET] = min(room, max(LEAST_PRESET, min(most, room // 4))) if long else room
        room -= shown[PRESET]
    if TASK in long and NOW in long:
        now = max(min(room // 2, LEAST_NOW), int(room * SHARE_OF_NOW))
        longest = max(LEAST_TASK, min(extent.task, LONGEST_TASK) + GUTTER)
        shown[TASK] = min(room - now, longest)
        shown[NOW] = room - shown[TASK]
    elif long:
        shown[long[0]] = room
    return shown


def headings(shown: Layout, sort: Sort, *, backwards: bool) -> str:
    """Return the line above the rows, with a sign beside the heading of the sort."""
    line = " " * LEAD
    for column, _, width in shown.spans:
        name = column.name if column.heading is None else column.heading
        if column.sort is sort and column is not ID:
            name += FALLING if sort.falls != backwards else RISING
        line += cell(name, width, column)
    return line


def cell(text: str, width: int, column: RunColumn) -> str:
    """Return a text as wide as its column, with its gutter."""
    if column is STATE:
        word = width >= WORD
        gutter = " " * (width - (WORD if word else GLYPH))
        return gutter + (fit(text, WORD) if word else fit(text[:GLYPH], GLYPH))
    if width <= GUTTER:
        return " " * width
    return " " * GUTTER + fit(text, width - GUTTER, right=column.right)
