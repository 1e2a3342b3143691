"""The table of hosts: a row for each, as many columns as fit, and all facts of one in words; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ...core import __version__
from ...core.config.host_settings import needs_words
from ...core.run.describe import NOTHING, moment, span
from ...core.text.column import TextColumn
from ...core.text.plain import one_line
from ..text.cells import cells as cell_width, fit
from ..widgets.line_view import RowList
from ._figures import NAME, name_of

if TYPE_CHECKING:
    from ...core.run.placement import HostState

Cell = tuple[str, str]
"""A text and the component class of its colour; empty for none."""

MUTED = "row-list--muted"
RUNNING = "row-list--running"
AWAY = "row-list--aborted"
VERSION = 40
"""Characters of a version."""
LEAST_NAME = 12
IN_REACH, OUT_OF_REACH, NOT_ASKED = "● online", "? unreachable", "– not checked"


class Shown(NamedTuple):
    """A host as it is shown now."""

    host: HostState
    is_current: bool
    """Whether its state is current."""
    now: datetime

    @property
    def in_reach(self) -> bool:
        return self.is_current and self.host.in_reach

    @property
    def words(self) -> str:
        if not self.is_current:
            return NOT_ASKED
        return IN_REACH if self.host.in_reach else OUT_OF_REACH

    @property
    def heard(self) -> str:
        """`3 s`, `4m`, `2h`: the time since it was last seen."""
        at = moment(self.host.heard_at)
        if at is None:
            return NOTHING
        seconds = (self.now - at).total_seconds()
        return f"{max(0, int(seconds))} s" if seconds < 60 else span(seconds)

    @property
    def version(self) -> str:
        """Its version of subdeck, with a sign if it differs from the one here."""
        version = one_line(self.host.subdeck, VERSION)
        return f"! {version}" if self.is_other_version else version or NOTHING

    @property
    def is_other_version(self) -> bool:
        return bool(self.host.subdeck) and self.host.subdeck != __version__


def _load(shown: Shown) -> str:
    host = shown.host
    if not shown.in_reach:
        return NOTHING
    return f"{host.load:.1f}/{host.cores}" if host.cores else f"{host.load:.1f}"


def _memory(shown: Shown) -> str:
    return f"{shown.host.memory_mb / 1024:.0f} GB" if shown.host.memory_mb else NOTHING


def _slots(shown: Shown) -> str:
    return f"{shown.host.used}/{shown.host.slots}" if shown.in_reach else f"{NOTHING}/{shown.host.slots}"


STATE = TextColumn[Shown](17, text=lambda shown: shown.words)
SLOTS = TextColumn[Shown](9, right=True, heading="slots", text=_slots)
RUNS = TextColumn[Shown](6, right=True, heading="runs", text=lambda shown: str(shown.host.runs or NOTHING))
PROGRAM = TextColumn[Shown](12, right=True, heading="subdeck", text=lambda shown: shown.version)
RESOURCES = TextColumn[Shown](18, heading=" resources", text=lambda shown: f" {needs_words(shown.host.labels)}")
COLUMNS: tuple[TextColumn[Shown], ...] = (
    STATE,
    SLOTS,
    RUNS,
    TextColumn(11, right=True, heading="last seen", text=lambda shown: shown.heard),
    TextColumn(10, right=True, heading="load", text=_load),
    TextColumn(9, right=True, heading="memory", text=_memory),
    PROGRAM,
    RESOURCES,
)
"""The columns that are dropped first come last; widths include the blank before the text."""


class Layout(NamedTuple):
    name: int
    """Cells of the names."""
    columns: tuple[TextColumn[Shown], ...]
    """The columns that fit beside them."""


@lru_cache(32)
def _layout(width: int, name: int, *, has_labels: bool) -> Layout:
    room = width - LEAST_NAME
    shown: list[TextColumn[Shown]] = []
    for column in COLUMNS:
        if column.most > room:
            break
        if has_labels or column is not RESOURCES:
            shown.append(column)
            room -= column.most
    return Layout(LEAST_NAME + max(0, min(room, name - LEAST_NAME)), tuple(shown))


def layout(hosts: Sequence[Shown], width: int) -> Layout:
    """Lay out the table: the names are as wide as needed, and labels are shown only if a host has some."""
    longest = max((cell_width(one_line(shown.host.name, NAME)) for shown in hosts), default=0)
    return _layout(width, longest + 1, has_labels=any(shown.host.labels for shown in hosts))


def heading(table: Layout) -> str:
    return fit("host", table.name) + "".join(_cell(column.heading, column) for column in table.columns)


def cells(shown: Shown, table: Layout) -> list[Cell]:
    """Return a host's row."""
    row: list[Cell] = [(fit(one_line(shown.host.name, NAME), table.name), "" if shown.in_reach else MUTED)]
    for column in table.columns:
        colour = MUTED
        if column is STATE:
            colour = RUNNING if shown.in_reach else AWAY if shown.is_current else MUTED
        elif column is PROGRAM and shown.is_other_version:
            colour = AWAY
        elif column in (SLOTS, RUNS):
            colour = ""
        row.append((_cell(column.text(shown), column), colour))
    return row


def _cell(text: str, column: TextColumn[Shown]) -> str:
    return " " + fit(text, column.most - 1, right=column.right)


def _carrier(host: HostState) -> str:
    version = one_line(host.carrier_version, VERSION)
    return f"via {one_line(host.carrier, VERSION)}{f' ({version})' if version else ''}" if host.carrier else ""


def facts(shown: Shown) -> str:
    """Return all facts of a host: `h07 · via dask · subdeck 0.9 · Python 3.11 · resources gpu 1 · ssh me@h07`."""
    host = shown.host
    heard = f"last seen {shown.heard} ago" if not shown.in_reach and shown.heard != NOTHING else ""
    version = one_line(host.subdeck, VERSION)
    mismatch = f" (local {__version__}, install the same version)" if shown.is_other_version else ""
    labels = needs_words(host.labels)
    parts = (
        name_of(host),
        heard,
        _carrier(host),
        f"subdeck {version}{mismatch}" if version else "",
        f"Python {one_line(host.python, VERSION)}" if host.python else "",
        f"resources {labels}" if labels else "",
        f"ssh {one_line(host.address, 100)}" if host.address else "",
    )
    return " · ".join(filter(None, parts))


# --- the table -------------------------------------------------------------------------------------------------------


class HostTable(RowList, can_focus=True, inherit_bindings=False):
    def __init__(self) -> None:
        super().__init__(id="hosts")
        self._shown: tuple[Shown, ...] = ()
        self.empty: Sequence[str] = ()
        """The text shown without hosts."""

    @property
    def shown(self) -> Shown | None:
        """The highlighted host."""
        return self._shown[self.cursor] if self.cursor < len(self._shown) else None

    def show_hosts(self, shown: Sequence[Shown], empty: Sequence[str]) -> None:
        here = self.shown
        self._shown, self.empty = tuple(shown), empty
        rows = (row for row, each in enumerate(self._shown) if here and each.host.name == here.host.name)
        self.cursor = next(rows, min(self.cursor, max(0, len(self._shown) - 1)))
        self.set_height()
        self.show_cursor()
        self.refresh()

    @property
    def row_count(self) -> int:
        return len(self._shown)

    @property
    def wants_head(self) -> bool:
        return bool(self._shown)

    def head_line(self, width: int) -> str:
        return heading(layout(self._shown, width))

    def empty_lines(self) -> list[str]:
        return list(self.empty)

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        return cells(self._shown[row], layout(self._shown, width))

    def cursor_moved(self) -> None:
        self.post_message(self.Highlighted())
