"""The columns of the run list at a width, and the texts at its edges; pure.

From the left: whether it needs attention, a mark or the place in a group, state, preset, task, what it does now; from
the right: agent, cost, tokens, elapsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from ...core.run.describe import doing, doing_silently, elapsed, known_cost, state, tokens
from ...core.run.model import RunnerKind, RunStatus
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ..actions import ACTIONS, Action, key_of
from ..text.cells import fit
from ..text.format import dollars, tries
from .order import GroupFacts

if TYPE_CHECKING:
    from .listing import Listing
    from .store import RunStore

Cell = tuple[str, str]
"""A text and the component class that colours it; empty for none."""

NARROW = 60
"""Below this many cells what a run does now is left out; state, preset and task matter more."""
COST_FROM = 80
"""From this many cells on there is a column for the cost."""
AGENT_FROM = 108
"""From this many on, one for agent and runner."""
TINY = 36
"""Below this many the state is a glyph without its word, and the tokens are left out."""
ROOMY = 130
"""From this many on the preset has more room."""

LEAD = 2
"""Whether it needs attention; the mark, or the place in a group."""
STATE = 11
GLYPH = 1
ELAPSED = 8
TOKENS = 6
COST = 8
AGENT = 14

NEEDS_YOU = "!"
UNREAD = "•"
ASKS = "?"
MARK = "◆"
FOLDED, UNFOLDED = "▸", "▾"
MEMBER, LAST_MEMBER = "│", "╰"

_MUTED = "row-list--muted"
SILENT = "row-list--silent"


class Columns(NamedTuple):
    """Widths, each but the first with the space before it; 0 leaves a column out."""

    state: int
    preset: int
    task: int
    now: int
    tokens: int
    cost: int
    agent: int


@lru_cache(64)
def columns(width: int) -> Columns:
    """Return the widths in a row; a narrow one leaves the last columns out."""
    cost = COST if width >= COST_FROM else 0
    agent = AGENT if width >= AGENT_FROM else 0
    state_cells, token_cells = (GLYPH, 0) if width < TINY else (STATE, TOKENS)
    room = max(0, width - LEAD - state_cells - ELAPSED - token_cells - cost - agent)
    preset = max(7, min(24 if width >= ROOMY else 15, room // 4))
    rest = max(0, room - preset)
    task = rest // 2 if width >= NARROW else rest
    return Columns(state_cells, preset, task, rest - task, token_cells, cost, agent)


@lru_cache(64)
def time_column(width: int) -> tuple[int, int]:
    """Return where in a row the elapsed time begins, and how many cells it has."""
    wide = columns(width)
    return LEAD + wide.state + wide.preset + wide.task + wide.now, ELAPSED


_CALM = {False: (UNREAD, _MUTED), True: (ASKS, "row-list--aborted")}
"""The sign of an end that was not looked at, by whether it asks."""


class RowFlags(NamedTuple):
    """What is shown in front of a row."""

    needs_you: bool = False
    unread: bool = False
    marked: bool = False
    tree: str = " "
    """Its place in a group."""
    asks: bool = False
    """Whether its answer, not looked at yet, is a question."""
    silence: int | None = None
    """Seconds for which it is silent; None for one that is not."""

    def cells(self) -> list[Cell]:
        calm = _CALM[self.asks] if self.unread else (" ", _MUTED)
        loud = "row-list--failed" if self.silence is None else SILENT
        attention = (NEEDS_YOU, loud) if self.needs_you else calm
        return [attention, (MARK, "row-list--running") if self.marked else (self.tree, _MUTED)]


class RunRow:
    """The row of a run as it is now; only its time is drawn again each second."""

    def __init__(self, run: RunSnapshot, flags: RowFlags, width: int) -> None:
        self.shows = (run, flags, width)
        wide = columns(width)
        silence = flags.silence
        colour = _MUTED if run.foreign else _colour(run.status) if silence is None else SILENT
        again = tries(run)
        about = one_line(run.meta.description or run.meta.task, 400)
        self._before = [
            *flags.cells(),
            (_state(state(run, silent=silence is not None), wide), colour),
            _after_space(one_line(run.meta.title, 60), wide.preset),
            _after_space(f"{again} · {about}" if again and not wide.now else about, wide.task),
        ]
        if wide.now:
            now = doing(run) if silence is None else doing_silently(run, silence)
            loud = run.status is RunStatus.FAILED or silence is not None
            self._before.append(
                _after_space(f"{again} · {now}" if again else now, wide.now, colour if loud else _MUTED)
            )
        self._after = _figures(wide, run.usage.tokens, run.usage.cost, run.usage.unpriced)
        if wide.agent:
            tmux = run.meta.runner == RunnerKind.TMUX
            agent = one_line(run.meta.agent, 60)
            self._after.append(_after_space(f"{agent} {RunnerKind.TMUX}" if tmux else agent, wide.agent, _MUTED))

    def is_of(self, run: RunSnapshot, flags: RowFlags, width: int) -> bool:
        """Return whether the row shows this very snapshot, in this way."""
        return self.shows[0] is run and self.shows[1:] == (flags, width)

    def cells(self, now: datetime) -> list[Cell]:
        return [*self._before, _time(elapsed(self.shows[0], now)), *self._after]


def head_cells(group: GroupFacts, flags: RowFlags, width: int, now: datetime) -> list[Cell]:
    """Return the row of a group as a whole."""
    wide = columns(width)
    room = wide.task + wide.now
    tally = min(room, max(wide.task, cell_len(group.tally) + 2))
    cells = [
        *flags.cells(),
        (_state(group.state, wide), _colour(group.status)),
        _after_space(group.size, wide.preset),
        _after_space(group.tally, tally),
        _after_space(f"{group.title}: {group.about}", room - tally, _MUTED),
    ]
    cells += [_time(group.elapsed(now)), *_figures(wide, group.tokens, group.cost, group.unpriced)]
    if wide.agent:
        cells.append((" " * wide.agent, ""))
    return cells


def _state(text: str, wide: Columns) -> str:
    return fit(text, wide.state) if wide.state >= STATE else text[: wide.state]


def _time(text: str) -> Cell:
    return (fit(text, ELAPSED, right=True), "")


def _figures(wide: Columns, token_count: int, cost: float, unpriced: int) -> list[Cell]:
    cells: list[Cell] = []
    if wide.tokens:
        cells.append((fit(tokens(token_count), wide.tokens, right=True), _MUTED))
    if wide.cost:
        cells.append((fit(known_cost(dollars(cost), unpriced), wide.cost, right=True), _MUTED))
    return cells


def _after_space(text: str, width: int, colour: str = "") -> Cell:
    return (" " + fit(text, width - 1) if width > 0 else "", colour)


def _colour(status: RunStatus) -> str:
    return _MUTED if status is RunStatus.QUEUED else f"row-list--{status.value}"


FILTER_SHOWN = 40
"""Characters of a filter that the title shows."""


def upper_edge(listing: Listing, known: int) -> str:
    """Return `Runs · 12 of 240 · status:failed · by cost`; defaults are left out."""
    parts = ["Runs"]
    if listing.filter:
        parts += [f"{listing.shown} of {known}", f"/ {one_line(listing.filter.text, FILTER_SHOWN)}"]
    if listing.sort:
        parts.append(listing.sort.value)
    return " · ".join(parts)


def lower_edge(run_store: RunStore, listing: Listing, actions: Sequence[Action] = ACTIONS) -> str:
    """`3 marked, 1 not shown · 2 need you  ] next`."""
    parts: list[str] = []
    if run_store.marked:
        hidden = sum(listing.row_of(run_id) is None for run_id in run_store.marked)
        parts.append(f"{len(run_store.marked)} marked" + (f", {hidden} not shown" if hidden else ""))
    if unseen := len(run_store.unseen) + len(run_store.silence.needing):
        verb = "needs" if unseen == 1 else "need"
        parts.append(f"{unseen} {verb} you  {key_of('next_unseen', actions)} next")
    return " · ".join(parts)
