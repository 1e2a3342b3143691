"""In which order runs and groups stand in the list: running, then queued, then finished, whatever the sort; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum, StrEnum

from msgspec import Struct

from ...core.run.describe import ELSEWHERE_GLYPH, GLYPHS, NOTHING, clock, moment
from ...core.run.model import RunSnapshot, RunStatus
from ...core.text.plain import one_line

Value = float | str
Key = tuple[int, Value, str]
"""Section, what the sort compares, age; ascending."""


class Section(IntEnum):
    RUNNING = 0
    """Newest first."""
    QUEUED = 1
    """In the order in which they get their turn: oldest first."""
    FINISHED = 2
    """Newest first."""


class Sort(StrEnum):
    """What decides within a section; the value is what the title says."""

    AGE = ""
    COST = "by cost"
    TOKENS = "by tokens"
    ELAPSED = "by elapsed"
    PRESET = "by preset"

    @property
    def following(self) -> Sort:
        sorts = tuple(Sort)
        return sorts[(sorts.index(self) + 1) % len(sorts)]


_FLIPPED = str.maketrans("0123456789abcdef", "fedcba9876543210")
"""Turns the order of two ages round."""


def section_of(status: RunStatus) -> Section:
    match status:
        case RunStatus.RUNNING:
            return Section.RUNNING
        case RunStatus.QUEUED:
            return Section.QUEUED
        case _:
            return Section.FINISHED


def age_of(run: RunSnapshot) -> str:
    """Return what sorts runs from old to new: an id tells the second, `createdAt` the rest."""
    run_id = run.run_id
    return f"{run_id[:15]}{run.meta.created_at[:24]}{run_id[15:]}"


def run_key(run: RunSnapshot, sort: Sort) -> Key:
    """Return where a run stands that is in no group."""
    section = section_of(run.status)
    return _key(section, _value_of_run(run, section, sort), age_of(run))


def group_key(group: GroupFacts, sort: Sort) -> Key:
    """Return where a group stands as a whole."""
    section = section_of(group.status)
    return _key(section, _value_of_group(group, section, sort), group.age)


def _key(section: Section, value: Value, age: str) -> Key:
    return (int(section), value, age if section is Section.QUEUED else age.translate(_FLIPPED))


def _value_of_run(run: RunSnapshot, section: Section, sort: Sort) -> Value:
    match sort:
        case Sort.AGE:
            return 0.0
        case Sort.COST:
            return -run.usage.cost
        case Sort.TOKENS:
            return -float(run.usage.tokens)
        case Sort.ELAPSED:
            return _longest_first(section, run.started_at or "", (run.end and run.end.duration_ms) or 0)
        case Sort.PRESET:
            return one_line(run.meta.title, 60).casefold()


def _value_of_group(group: GroupFacts, section: Section, sort: Sort) -> Value:
    match sort:
        case Sort.AGE:
            return 0.0
        case Sort.COST:
            return -group.cost
        case Sort.TOKENS:
            return -float(group.tokens)
        case Sort.ELAPSED:
            return _longest_first(section, group.began, group.longest_ms)
        case Sort.PRESET:
            return group.title.casefold()


def _longest_first(section: Section, began: str, duration_ms: int) -> Value:
    """Compare those that go on by their beginnings, so that their order holds while time passes."""
    match section:
        case Section.RUNNING:
            return began
        case Section.QUEUED:
            return ""
        case Section.FINISHED:
            return -float(duration_ms)


_DECIDES = (RunStatus.RUNNING, RunStatus.QUEUED, RunStatus.FAILED, RunStatus.ABORTED, RunStatus.COMPLETED)
"""A group has the first of these that one of its runs has."""
_IN_WORDS = (RunStatus.RUNNING, RunStatus.QUEUED)
_IN_GLYPHS = (RunStatus.FAILED, RunStatus.ABORTED, RunStatus.COMPLETED)


class GroupFacts(Struct, frozen=True):
    """What its head says, drawn from those of its runs that are shown."""

    members: tuple[str, ...]
    """Run ids in the order in which they were asked for."""
    known: int
    """Runs of the group that there are, shown or not."""
    counts: tuple[tuple[RunStatus, int], ...]
    status: RunStatus
    elsewhere: bool
    """Whether what decides the status is held by another machine."""
    tokens: int
    cost: float
    began: str
    """When the first of those began that go on; empty when none does."""
    longest_ms: int
    """Of those that have ended."""
    age: str
    """Of the oldest one."""
    title: str
    """The preset, or how many there are."""
    told: str
    """What the first one is about."""

    @property
    def state(self) -> str:
        """Glyph and word."""
        return f"{ELSEWHERE_GLYPH if self.elsewhere else GLYPHS[self.status]} {self.status.value}"

    @property
    def size(self) -> str:
        """`4 runs`; `2 of 4 runs` while a filter hides some."""
        shown = len(self.members)
        return f"{shown} runs" if shown == self.known else f"{shown} of {self.known} runs"

    @property
    def tally(self) -> str:
        """`2 running  1 ✗  1 ✓`: what goes on in words, what is over by its glyph."""
        counts = dict(self.counts)
        parts = [f"{counts[status]} {status.value}" for status in _IN_WORDS if status in counts]
        parts += [f"{counts[status]} {GLYPHS[status]}" for status in _IN_GLYPHS if status in counts]
        return "  ".join(parts)

    def elapsed(self, now: datetime) -> str:
        """The longest time that one of them took or has taken."""
        seconds = self.longest_ms / 1000
        begun = moment(self.began) if self.began else None
        if begun is not None:
            seconds = max(seconds, (now - begun).total_seconds())
        return clock(seconds) if begun is not None or self.longest_ms else NOTHING


def as_one(runs: Sequence[RunSnapshot], known: int) -> GroupFacts:
    """Sum up at least one run of a group; `known` is how many of it there are."""
    counts = Counter(run.status for run in runs)
    status = next(status for status in _DECIDES if status in counts)
    presets = dict.fromkeys(run.meta.title for run in runs)
    first = runs[0].meta
    return GroupFacts(
        members=tuple(run.run_id for run in runs),
        known=known,
        counts=tuple(counts.items()),
        status=status,
        elsewhere=all(run.elsewhere for run in runs if run.status is status),
        tokens=sum(run.usage.tokens for run in runs),
        cost=sum(run.usage.cost for run in runs),
        began=min((run.started_at for run in runs if not run.has_ended and run.started_at), default=""),
        longest_ms=max((run.end.duration_ms or 0 for run in runs if run.end), default=0),
        age=min(age_of(run) for run in runs),
        title=one_line(first.title, 60) if len(presets) == 1 else f"{len(presets)} presets",
        told=one_line(first.description or first.task, 400),
    )


def place_in_group(run: RunSnapshot) -> tuple[int, str]:
    """Sort the runs of a group as they were asked for."""
    return (run.meta.group.index if run.meta.group else 0, run.run_id)
