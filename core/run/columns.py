"""The columns of the run list: one entry each, for the app, `subdeck status`, the settings and the reference; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from ..text.column import Column
from ..text.plain import one_line
from .describe import NOTHING, age, doing, doing_silently, elapsed, known_cost, short_cost, state, tokens, tokens_used
from .model import RunnerKind, RunReason, RunStatus
from .snapshot import RunSnapshot

if TYPE_CHECKING:
    from typing import Literal

    from .changes import Changes

    Tone = Literal["muted", "plain", "state", "news"]

Runs = Sequence[RunSnapshot]
Value = float | str

NAME, HOST_NAME = 60, 64
"""Characters of a name, and of the name of a host."""
ABOUT = 400
"""Characters of a task that a row may show."""
DOING = 160
"""Characters of a run's activity or result in `subdeck status`."""


class RunView(Struct, frozen=True):
    """A run as a row shows it."""

    run: RunSnapshot
    silence: float | None = None
    """Seconds for which it has been idle; None if it is not."""
    limit: int = 400
    """Characters of its activity or result."""
    common: int = 0
    """Characters at the beginning of its task that the head of its group has."""
    changed: str = ""
    """The figure of its changes so far, while it runs."""
    brief: frozenset[str] = frozenset()
    """Names of the columns that have room for a few words only."""


class Section(IntEnum):
    """A section of the list, from the top."""

    WAITING = -1
    """For a reply of a person, in the order of the running ones."""
    RUNNING = 0
    """Newest first."""
    QUEUED = 1
    """In queue order: oldest first."""
    FINISHED = 2
    """Newest first; includes untrusted runs, even if they claim to be active."""


PRECEDENCE = (RunStatus.RUNNING, RunStatus.QUEUED, RunStatus.FAILED, RunStatus.ABORTED, RunStatus.COMPLETED)
"""A group has the first of these statuses that one of its runs has."""


class Sort(Struct, frozen=True, eq=False):
    """How the rows of a section are sorted by a column."""

    name: str
    """The column's name."""
    value: Callable[[Runs, RunStatus, Section], Value]
    """The compared value of a run, or of a group as a whole; the smallest comes first."""
    falls: bool = False
    """Whether the largest comes first unless the order is reversed; the values are negated."""
    cycle_order: int | None = 99
    """Position among the orders that the sort key cycles through; None if only a click on the heading sorts by it."""

    @property
    def title(self) -> str:
        """The order as shown in the list's title and stored in the layout file; empty for the default."""
        return "" if self is BY_AGE else f"by {self.name}"

    @property
    def next(self) -> Sort:
        """The order that the sort key leads to."""
        return CYCLE[(CYCLE.index(self) + 1) % len(CYCLE)] if self in CYCLE else BY_AGE


def _nothing(_: object) -> str:
    return ""


class RunColumn(Struct, frozen=True, eq=False, kw_only=True):
    name: str
    """Its name in the settings."""
    heading: str | None = None
    """None: its name."""
    text: Callable[[RunView], str] = _nothing
    time: Callable[[RunSnapshot, datetime], str] | None = None
    """The text of a column that changes with time, instead of `text`."""
    whole: Callable[[Runs], str] = _nothing
    """The text of a group's head, if it depends neither on the time nor on the width."""
    cells: int = 0
    """Width in the app, with the gutter; 0 for a text that shares the rest of the row."""
    left: int = 72
    """Cells that must remain for the texts beside it."""
    rank: int = 99
    """Rank among the columns with a width: the first one gets its cells first."""
    brief_to: int = 0
    """Width in the app up to which its text is abbreviated."""
    right: bool = False
    """Whether it is right-aligned."""
    tone: Tone = "muted"
    """The colour in the app: of the run's state, the same but only if it is news, or muted or plain."""
    counted: bool = False
    """Whether the user decides on its text while a run needs input: a cut text ends with the size of the cut."""
    has_text: Callable[[RunSnapshot], bool] | None = None
    """Whether a run has a text in it; the app hides the column until a run has one. None: every run has one."""
    is_usual: bool = False
    """Whether it is shown without a setting."""
    needs_remote: bool = False
    """Whether it is shown only while a run of another machine is listed."""
    sort: Sort | None = None
    """What a click on its heading sorts by."""
    filtered: Callable[[RunSnapshot], str] | None = None
    """The text that a filter `NAME:VALUE` searches; None if its name is not such a key."""
    status: Column | None = None
    """The column in `subdeck status`; None if it has none."""
    status_text: Callable[[RunView], str] | None = None
    """Its text there, if different."""
    words: str = ""
    """The column in the help of `subdeck status`; empty: its name."""


# --- texts -----------------------------------------------------------------------------------------------------------


def about(run: RunSnapshot) -> str:
    """Return what a run is about, on one line."""
    return one_line(run.meta.description or run.meta.task, ABOUT)


def model_of(run: RunSnapshot) -> str:
    return run.meta.resolved_model or run.meta.requested_model


def _task(view: RunView) -> str:
    text = about(view.run)
    if not view.common:
        return text
    return f"…{text[view.common :]}" if len(text) > view.common else _copy(view.run)


def _copy(run: RunSnapshot) -> str:
    """Return which of several runs with one task it is."""
    group = run.meta.group
    return f"{group.index + 1} of {group.size}" if group else about(run)


def _now(view: RunView) -> str:
    now = doing(view.run, view.limit)
    if not view.run.is_waiting:
        return now if view.silence is None else doing_silently(view.run, view.silence, view.limit)
    if "now" not in view.brief:
        return now
    import re  # few lists are so narrow

    return re.sub(r"^(! )?wants to (run|change|write|read) (?:a command|a file|files): ", r"\1\2: ", now)


def _has_news(run: RunSnapshot) -> bool:
    end = run.end
    return end is None or bool(end.message or end.check) or end.reason not in (RunReason.DONE, RunReason.FINALIZED)


_WORKTREE = "⎇ worktree"
"""Behind the agent of a run that works apart from the project's files."""


def _agent(view: RunView) -> str:
    meta = view.run.meta
    name = one_line(meta.agent, NAME)
    if "agent" in view.brief:
        return name
    parts = (name, RunnerKind.TMUX if meta.runner == RunnerKind.TMUX else "", _WORKTREE if meta.worktree else "")
    return " ".join(filter(None, parts))


def has_changes(changes: Changes | None) -> bool:
    """Return whether there are changes, or it is unknown whether there are any."""
    return changes is not None and changes.figure != NOTHING


def _host(view: RunView) -> str:
    """Return the host; a dash for a run that waits for any host."""
    return one_line(view.run.host, HOST_NAME) or (NOTHING if view.run.is_remote else "")


# --- sums over a group -----------------------------------------------------------------------------------------------


def cost(runs: Runs) -> float:
    return sum(run.usage.cost for run in runs)


def token_count(runs: Runs) -> int:
    return sum(run.usage.tokens for run in runs)


def _lines_changed(runs: Runs) -> int:
    return sum(changes.added + changes.removed for run in runs if (changes := run.changes))


def began(runs: Runs) -> str:
    """Return when the first of the active runs began; empty if none is active."""
    return min((run.started_at for run in runs if not run.has_ended and run.started_at), default="")


def longest_ms(runs: Runs) -> int:
    return max((run.end.duration_ms or 0 for run in runs if run.end), default=0)


def title(runs: Runs) -> str:
    """Return the preset, or how many there are."""
    titles = {run.meta.title for run in runs}
    return one_line(runs[0].meta.title, NAME) if len(titles) == 1 else f"{len(titles)} presets"


def _hosts(runs: Runs) -> str:
    hosts = {host for run in runs if (host := run.host)}
    return f"{len(hosts)} hosts" if len(hosts) > 1 else one_line(next(iter(hosts), ""), HOST_NAME)


def _agents(runs: Runs) -> str:
    agents = {run.meta.agent for run in runs}
    return f"{len(agents)} agents" if len(agents) > 1 else one_line(runs[0].meta.agent, NAME)


def _by_elapsed(runs: Runs, _: RunStatus, section: Section) -> Value:
    if section is Section.FINISHED:
        return -float(longest_ms(runs))
    # Those that are running are compared by when they began, so that their order holds while time passes.
    return "" if section is Section.QUEUED else began(runs)


# --- the table -------------------------------------------------------------------------------------------------------

BY_AGE = Sort("age", lambda _runs, _status, _section: 0.0, cycle_order=1)
"""By age, which also breaks ties of the other orders."""

STATE = RunColumn(
    name="state",
    heading="",
    text=lambda view: state(view.run, silent=view.silence is not None),
    tone="state",
    is_usual=True,
    sort=Sort("state", lambda _runs, status, _section: float(PRECEDENCE.index(status)), cycle_order=7),
    status=Column(13),
)
PRESET = RunColumn(
    name="preset",
    text=lambda view: one_line(view.run.meta.title, NAME),
    tone="plain",
    is_usual=True,
    sort=Sort("preset", lambda runs, _status, _section: title(runs).casefold(), cycle_order=5),
    filtered=lambda run: run.meta.title,
    status=Column(20, least=8),
    status_text=lambda view: view.run.meta.title,
)
TASK = RunColumn(
    name="task",
    text=_task,
    tone="plain",
    is_usual=True,
    sort=Sort("task", lambda runs, _status, _section: about(runs[0]).casefold(), cycle_order=6),
    status=Column(60, least=10),
    status_text=lambda view: view.run.meta.description or view.run.meta.task,
)
NOW = RunColumn(
    name="now",
    text=_now,
    brief_to=47,
    tone="news",
    counted=True,
    has_text=_has_news,
    is_usual=True,
    status=Column(DOING, least=12),
    words="current activity or result",
)
HOST = RunColumn(
    name="host",
    text=_host,
    whole=_hosts,
    cells=12,
    left=24,
    rank=2,
    is_usual=True,
    needs_remote=True,
    sort=Sort("host", lambda runs, _status, _section: runs[0].host.casefold(), cycle_order=None),
    filtered=lambda run: run.host,
    status=Column(20, least=4),
    status_text=lambda view: view.run.host,
    words="host (if a listed run is on another machine)",
)
AGE = RunColumn(name="age", time=age, cells=5, left=42, rank=4, right=True, is_usual=True, sort=BY_AGE)
ELAPSED = RunColumn(
    name="elapsed",
    heading="time",
    time=elapsed,
    cells=8,
    left=8,
    rank=1,
    right=True,
    tone="plain",
    is_usual=True,
    sort=Sort("elapsed", _by_elapsed, falls=True, cycle_order=4),
    status=Column(9, right=True),
    words="time",
)
TOKENS = RunColumn(
    name="tokens",
    heading="tok",
    text=lambda view: tokens_used(view.run.usage),
    whole=lambda runs: tokens(token_count(runs)),
    cells=6,
    left=46,
    rank=5,
    right=True,
    has_text=lambda run: bool(run.usage.tokens or run.usage.uncounted),
    is_usual=True,
    sort=Sort("tokens", lambda runs, _status, _section: -float(token_count(runs)), falls=True, cycle_order=3),
    status=Column(6, right=True),
)
COST = RunColumn(
    name="cost",
    text=lambda view: known_cost(short_cost(view.run.usage.cost), view.run.usage.unpriced),
    whole=lambda runs: known_cost(short_cost(cost(runs)), sum(run.usage.unpriced for run in runs)),
    cells=8,
    left=56,
    rank=6,
    right=True,
    has_text=lambda run: bool(run.usage.cost > 0 or run.usage.unpriced),
    is_usual=True,
    sort=Sort("cost", lambda runs, _status, _section: -float(cost(runs)), falls=True, cycle_order=2),
)
CHANGES = RunColumn(
    name="changes",
    text=lambda view: changes.figure if (changes := view.run.changes) else view.changed,
    cells=11,
    left=40,
    rank=3,
    right=True,
    has_text=lambda run: has_changes(run.changes),
    is_usual=True,
    sort=Sort("changes", lambda runs, _status, _section: -float(_lines_changed(runs)), falls=True, cycle_order=10),
)
AGENT = RunColumn(
    name="agent",
    text=_agent,
    whole=_agents,
    cells=14,
    left=96,
    rank=8,
    brief_to=9,
    is_usual=True,
    sort=Sort("agent", lambda runs, _status, _section: one_line(runs[0].meta.agent, NAME).casefold(), cycle_order=8),
    filtered=lambda run: run.meta.agent,
    status=Column(16, least=4),
    status_text=lambda view: view.run.meta.agent,
    words="agent (if the listed runs have several agents)",
)
MODEL = RunColumn(
    name="model",
    text=lambda view: one_line(model_of(view.run), NAME) or NOTHING,
    cells=22,
    rank=9,
    has_text=lambda run: bool(model_of(run)),
    sort=Sort("model", lambda runs, _status, _section: one_line(model_of(runs[0]), NAME).casefold(), cycle_order=9),
    filtered=model_of,
)
ID = RunColumn(
    name="id",
    text=lambda view: view.run.meta.short_id,
    cells=7,
    left=46,
    rank=7,
    sort=BY_AGE,
    status=Column(6),
)

COLUMNS = (STATE, PRESET, TASK, NOW, HOST, AGE, ELAPSED, TOKENS, COST, CHANGES, AGENT, MODEL, ID)
IN_STATUS = (STATE, ID, PRESET, TASK, AGENT, HOST, NOW, ELAPSED, TOKENS)
"""The columns of `subdeck status`, in their order."""
SORTS = tuple(dict.fromkeys(column.sort for column in COLUMNS if column.sort))
CYCLE = tuple(sorted((sort for sort in SORTS if sort.cycle_order is not None), key=lambda sort: sort.cycle_order or 0))
"""The orders that the sort key goes through."""


def column_names() -> tuple[str, ...]:
    return tuple(column.name for column in COLUMNS)


def columns_named(names: Sequence[str]) -> tuple[RunColumn, ...]:
    """Return the columns with these names, in this order. Raises KeyError."""
    named = {column.name: column for column in COLUMNS}
    return tuple(named[name] for name in names)


def sort_titled(title: str) -> Sort:
    """Return the order with a title. Raises ValueError."""
    for sort in SORTS:
        if sort.title == title:
            return sort
    raise ValueError(f"unknown order: {title}")
