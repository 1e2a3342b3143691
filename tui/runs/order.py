"""The order of runs and groups in the list: waiting, running, queued, then finished, for every sort; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from ...core.paths import project_key
from ...core.run.columns import (
    BY_AGE,
    COLUMNS,
    PRECEDENCE,
    Section,
    Sort,
    Value,
    about,
    began,
    longest_ms,
    sort_titled,
    title,
)
from ...core.run.describe import (
    ELSEWHERE_GLYPH,
    GLYPHS,
    NEWER,
    NOTHING,
    WAITS,
    WAITS_GLYPH,
    clock,
    moment,
    span,
)
from ...core.run.model import RunStatus
from ...core.run.need import needing_input
from ...core.run.snapshot import RunSnapshot
from ..layout_file import LayoutFile

SortKey = tuple[int, Value, str]
"""Section, sort value, age; ascending."""


_SECTIONS = {RunStatus.RUNNING: Section.RUNNING, RunStatus.QUEUED: Section.QUEUED}


_FLIPPED = str.maketrans("0123456789abcdef", "fedcba9876543210")
"""Reverses the order of two ages."""


class Backwards(str):
    """Sorts in reverse order of texts."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def section_of(status: RunStatus) -> Section:
    return _SECTIONS.get(status, Section.FINISHED)


def age_of(run: RunSnapshot) -> str:
    """Return the key that sorts runs from old to new: the id has the seconds, `createdAt` the rest."""
    run_id = run.run_id
    return f"{run_id[:15]}{run.meta.created_at[:24]}{run_id[15:]}"


def sort_key(runs: Sequence[RunSnapshot], status: RunStatus, sort: Sort, *, backwards: bool = False) -> SortKey:
    """Return the sort key of a run, or of a group's runs with this status; queued ones are in turn."""
    section = _section(runs, status)
    value = sort.value(runs, status, section)
    if backwards:
        value = Backwards(value) if isinstance(value, str) else -value
    age = min(map(age_of, runs))
    oldest_first = section is Section.QUEUED or (backwards and sort is BY_AGE)
    return (int(section), value, age if oldest_first else age.translate(_FLIPPED))


def _section(runs: Sequence[RunSnapshot], status: RunStatus) -> Section:
    if len(runs) == 1:  # most are single: without the loops
        is_foreign, is_waiting = runs[0].foreign, runs[0].is_waiting
    else:
        is_foreign, is_waiting = all(run.foreign for run in runs), any(run.is_waiting for run in runs)
    if is_foreign:
        return Section.FINISHED
    return Section.WAITING if is_waiting else section_of(status)


_IN_WORDS = (RunStatus.RUNNING, RunStatus.QUEUED)
_IN_GLYPHS = (RunStatus.FAILED, RunStatus.ABORTED, RunStatus.COMPLETED)


LEAST_COMMON = 8
"""Minimum characters of a common beginning to show it only once."""


@lru_cache(256)
def common_beginning(texts: tuple[str, ...]) -> str:
    """Return the common first words of these tasks; empty if they are too few to show once."""
    first, last = min(texts), max(texts)
    alike = (index for index, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    common = first[: next(alike, len(first))]
    if any(len(text) > len(common) for text in texts):
        common = common[: max(common.rfind(" "), common.rfind("/")) + 1]
    return common if len(common) >= LEAST_COMMON else ""


class GroupFacts(Struct, frozen=True):
    """The facts for the head of a group, from its shown runs."""

    members: tuple[str, ...]
    """Run ids in the order in which they were requested."""
    known: int
    """Number of runs in the group, shown or not."""
    counts: tuple[tuple[RunStatus, int], ...]
    """Without runs recorded by a newer subdeck: their result is unknown."""
    status: RunStatus
    elsewhere: bool
    """Whether all runs with the group's status are on another machine."""
    began: str
    """Start of the first running run; empty if none is running."""
    longest_ms: int
    """Of the finished runs."""
    title: str
    """The preset, or the number of presets."""
    about: str
    """Their common beginning, otherwise the first one's task."""
    common: int
    """Characters of the common beginning of their tasks; 0 without one."""
    launched: str
    """When the first one was launched."""
    texts: dict[str, str]
    """The texts of the columns that need neither the time nor the room, by name."""
    waiting: int = 0
    """Number of running runs that wait for a reply."""

    @property
    def state(self) -> str:
        """Glyph and word."""
        if not self.counts:
            return f"{ELSEWHERE_GLYPH} {NEWER}"
        if self.waiting:
            return f"{WAITS_GLYPH} {WAITS}"
        return f"{ELSEWHERE_GLYPH if self.elsewhere else GLYPHS[self.status]} {self.status.value}"

    @property
    def size(self) -> str:
        """`×4`; `2 of 4` while a filter hides some."""
        shown = len(self.members)
        return f"×{shown}" if shown == self.known else f"{shown} of {self.known}"

    @property
    def tally(self) -> str:
        """`2 running  1 ✗  1 ✓`: the unfinished in words, the finished by their glyphs."""
        counts = dict(self.counts)
        parts = [needing_input(self.waiting)] if self.waiting else []
        parts += [f"{counts[status]} {status.value}" for status in _IN_WORDS if status in counts]
        parts += [f"{counts[status]} {GLYPHS[status]}" for status in _IN_GLYPHS if status in counts]
        if newer := len(self.members) - sum(counts.values()):
            parts.append(f"{newer} {NEWER}")
        return "  ".join(parts)

    @property
    def short_tally(self) -> str:
        """`2● 1✗ 1✓`, if words do not fit."""
        parts = [f"{self.waiting}{WAITS_GLYPH}"] if self.waiting else []
        parts += [f"{count}{GLYPHS[status]}" for status in PRECEDENCE if (count := dict(self.counts).get(status))]
        if newer := len(self.members) - sum(dict(self.counts).values()):
            parts.append(f"{newer}{ELSEWHERE_GLYPH}")
        return " ".join(parts)

    def age(self, now: datetime) -> str:
        """Return the time since the first one was launched."""
        launched = moment(self.launched)
        return span((now - launched).total_seconds()) if launched else NOTHING

    def elapsed(self, now: datetime) -> str:
        """Return the longest time that one of them took or has taken so far."""
        seconds = self.longest_ms / 1000
        begin = moment(self.began) if self.began else None
        if begin is not None:
            seconds = max(seconds, (now - begin).total_seconds())
        return clock(seconds) if begin is not None or self.longest_ms else NOTHING


def summarize(runs: Sequence[RunSnapshot], known: int) -> GroupFacts:
    """Sum up at least one run of a group; `known` is the number of runs in it."""
    counts = Counter(run.status for run in runs if not run.newer_schema)
    status = next((status for status in PRECEDENCE if status in counts), runs[0].status)
    texts = tuple(map(about, runs))
    common = common_beginning(texts)
    is_same = len(set(texts)) == 1
    return GroupFacts(
        members=tuple(run.run_id for run in runs),
        known=known,
        counts=tuple(counts.items()),
        status=status,
        elsewhere=all(run.elsewhere for run in runs if run.status is status),
        began=began(runs),
        longest_ms=longest_ms(runs),
        title=title(runs),
        about=texts[0] if is_same or not common else f"{common}…",
        common=len(common),
        launched=min(run.meta.created_at for run in runs),
        texts={column.name: column.whole(runs) for column in COLUMNS},
        waiting=sum(run.is_waiting for run in runs),
    )


def order_in_group(run: RunSnapshot) -> tuple[int, str]:
    """Return the key that sorts the runs of a group as requested."""
    return (run.meta.group.index if run.meta.group else 0, run.run_id)


# --- the saved layout ------------------------------------------------------------------------------------------------


class ListLayout(Struct, frozen=True):
    """The saved layout of the list for each project."""

    filter: str = ""
    sort: str = ""
    """The title of the order."""
    folded: tuple[str, ...] = ()
    """Keys of the groups that show only their head."""
    backwards: bool = False
    """Whether the sort is reversed."""

    def __post_init__(self) -> None:
        """Refuse an unknown order. Raises ValueError."""
        sort_titled(self.sort)


def list_layout_file(project_root: str, *, readonly: bool = False) -> LayoutFile[ListLayout]:
    return LayoutFile(ListLayout(), lambda: f"lists/{project_key(project_root)}.json", readonly=readonly)


MOST_FOLDED = 200
"""Maximum number of folded groups that are saved."""
