"""In which order runs and groups stand in the list: running, then queued, then finished, whatever the sort; pure."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from ...core.run.model import RunSnapshot, RunStatus
from ...core.text.plain import one_line

if TYPE_CHECKING:
    from .grouping import GroupFacts

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
    """Answer what sorts runs from old to new: an id tells the second, `createdAt` the rest."""
    run_id = run.run_id
    return f"{run_id[:15]}{run.meta.created_at[:24]}{run_id[15:]}"


def run_key(run: RunSnapshot, sort: Sort) -> Key:
    """Answer where a run stands that is in no group."""
    section = section_of(run.status)
    return _key(section, _value_of_run(run, section, sort), age_of(run))


def group_key(group: GroupFacts, sort: Sort) -> Key:
    """Answer where a group stands as a whole."""
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
            return _longest_first(section, run.started_at or "", run.duration_ms or 0)
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
