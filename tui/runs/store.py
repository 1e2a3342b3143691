"""All runs of the project, their totals, and which of them are marked or unread."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from datetime import UTC, datetime, time as time_of_day, timedelta
from typing import TYPE_CHECKING, NamedTuple

from ...core.paths import now_iso
from ...core.run.describe import is_held
from ...core.run.model import LauncherKind, RunStatus
from ...core.run.need import Need, need_of
from ...core.run.snapshot import RunSnapshot
from .filter import Flags
from .seen import NEW, SEEN, Marks

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ...core.run.changes import Changes

_PARENTS = (LauncherKind.MCP, LauncherKind.PI)


class Totals(NamedTuple):
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Tokens of unknown cost."""

    def plus(self, run: RunSnapshot, step: int) -> Totals:
        """Add a run to the totals, or with -1 subtract it."""
        used = run.usage
        return Totals(
            self.tokens + step * used.tokens, self.cost + step * used.cost, self.unpriced + step * used.unpriced
        )


def midnights() -> tuple[str, str]:
    """Return when the local day began, and when it ends, in the format of `createdAt`."""
    today = datetime.now().date()
    days = (datetime.combine(day, time_of_day()).astimezone(UTC) for day in (today, today + timedelta(days=1)))
    begin, end = (day.isoformat(timespec="milliseconds").replace("+00:00", "Z") for day in days)
    return begin, end


class RunStore:
    """Snapshots by run id; `Listing` decides which are shown, and in which order."""

    def __init__(self) -> None:
        self._runs: dict[str, RunSnapshot] = {}
        self.is_complete = False
        """Whether all runs of the project are in here."""
        self.whole = Totals()
        """Totals of all runs."""
        self.today = Totals()
        """Totals of the runs launched since local midnight."""
        self._midnight, self._next_midnight = midnights()
        self.unseen: set[str] = set()
        """Failed runs with unread results: they need you."""
        self.unread: set[str] = set()
        """Other finished runs with unread results."""
        self.questions: set[str] = set()
        """Those of them whose answers are questions: they need you too."""
        self.handed_over: set[str] = set()
        """Runs whose waiting commands may still mark their results as read."""
        self.waiting: set[str] = set()
        """Runs whose agents wait for a reply."""
        self.asked: list[RunSnapshot] = []
        """Runs with a new request in the last update."""
        self.silence = SilenceWatch()
        self.marked: set[str] = set()
        """Runs that you have marked."""
        self.remote: set[str] = set()
        """Runs on other machines."""
        self.by_agent: dict[str, set[str]] = {}
        """The runs of each agent, by its name."""
        self.open_remote: set[str] = set()
        """Unfinished runs on other machines."""
        self.waited_for: dict[bool, set[str]] = {True: set(), False: set()}
        """Running foreground runs: True if a shell waits for them, False if a parent agent does."""
        self.held: set[str] = set()
        """Queued runs that do not start because the queue is paused."""
        self.marks = Marks()
        """The marks of read results, from disk; changed only by methods of this store."""
        self.changing: dict[str, Changes] = {}
        """Changes of running runs at the last read, by their ids."""
        self._conversations: dict[str, set[str]] = {}
        """Run ids by the id of their conversation."""
        self.holding: dict[str, set[str]] = {}
        """By each text of the filter: the runs whose files contain it."""

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._runs

    @property
    def runs(self) -> Iterable[RunSnapshot]:
        """All runs, in no order."""
        return self._runs.values()

    def get(self, run_id: str | None) -> RunSnapshot | None:
        return self._runs.get(run_id) if run_id else None

    def earlier(self, run: RunSnapshot) -> list[RunSnapshot]:
        """Return the runs of its conversation that ended before it was launched, oldest first."""
        ids = self._conversations.get(run.child_session_id or "", ())
        others = (self._runs[run_id] for run_id in ids if run_id != run.run_id)
        begin = run.meta.created_at
        before = [one for one in others if one.has_ended and not one.is_left_alone and one.meta.created_at <= begin]
        return sorted(before, key=lambda one: (one.meta.created_at, one.run_id))

    def flags(self, run_id: str) -> Flags:
        """Return the filter's facts on a run beside its snapshot."""
        holds = frozenset(text for text, run_ids in self.holding.items() if run_id in run_ids)
        return Flags(self.needs_look(run_id), run_id in self.marked, holds, run_id in self.silence.silent)

    def apply(self, update: Update) -> None:
        """Apply an update."""
        self._begin_day()
        self.is_complete = update.complete
        self.asked = []
        for run_id in update.removed:
            self._forget(run_id)
        for run in update.runs:
            self._put(run)

    def mark_unseen(self, ended: Iterable[RunSnapshot]) -> None:
        """Mark the results of these runs as unread."""
        now = time.time()
        for run in ended:
            self.marks.note(NEW, run.run_id)
            self._judge(run, now)

    def mark_seen(self, run_id: str) -> bool:
        """Mark a run's result as read; return whether it was unread, or would have become so."""
        if run_id not in self.unseen and run_id not in self.unread and run_id not in self.handed_over:
            return False
        self.marks.note(SEEN, run_id)
        for noted in (self.unseen, self.unread, self.questions, self.handed_over):
            noted.discard(run_id)
        return True

    def _judge(self, run: RunSnapshot, now: float) -> None:
        """Decide by the marks whether a run's result is unread; never for a run with a newer schema."""
        run_id = run.run_id
        for noted in (self.unseen, self.unread, self.questions, self.handed_over):
            noted.discard(run_id)
        if run.end is None or run.is_left_alone or not self.marks.is_unread(run):
            return
        if self.marks.is_being_handed_over(run, now):
            self.handed_over.add(run_id)
        elif (need := need_of(run, is_unread=True, is_idle=False)) is not None:
            (self.unseen if need is Need.FAILED else self.unread).add(run_id)
            if need is Need.ASKS:
                self.questions.add(run_id)

    def is_unseen(self, run_id: str) -> bool:
        """Return whether a run has ended and its result is unread."""
        return run_id in self.unseen or run_id in self.unread

    def needs_look(self, run_id: str) -> bool:
        return self.is_unseen(run_id) or run_id in self.waiting or run_id in self.silence.needing

    def take_marks(self, content: bytes) -> set[str]:
        """Apply the marks of all windows and commands; return the runs that have become unread or read."""
        before = self.unseen | self.unread
        self.marks.take(content)
        now = time.time()
        for run in self.runs:
            self._judge(run, now)
        return before ^ (self.unseen | self.unread)

    def need(self, run_id: str) -> Need | None:
        """Return why a run needs you, or that its result is unread; None if neither."""
        run = self._runs.get(run_id)
        is_idle = run_id in self.silence.needing
        return need_of(run, is_unread=self.is_unseen(run_id), is_idle=is_idle) if run else None

    @property
    def needs_you(self) -> dict[str, Need]:
        """The runs that need you: the number that every place shows, and the runs that the key visits."""
        ids = self.waiting | self.unseen | self.questions | self.silence.needing
        return {run_id: need for run_id in ids if (need := self.need(run_id)) is not None}

    @property
    def needs(self) -> dict[str, Need]:
        """The runs that need you, and the other ones with unread results."""
        return dict.fromkeys(self.unread, Need.NEW) | self.needs_you

    def _put(self, run: RunSnapshot) -> None:
        old = self._runs.get(run.run_id)
        self._runs[run.run_id] = run
        if (old is None or old.told_session != run.told_session) and (session := run.child_session_id):
            self._conversations.setdefault(session, set()).add(run.run_id)
        self.silence.put(run)
        self.by_agent.setdefault(run.meta.agent, set()).add(run.run_id)
        if run.is_remote:
            self.remote.add(run.run_id)
            (self.open_remote.discard if run.has_ended else self.open_remote.add)(run.run_id)
        if run.is_waiting:
            self.waiting.add(run.run_id)
            if old is None or run.requests[-1].id not in [request.id for request in old.requests]:
                self.asked.append(run)
        else:
            self.waiting.discard(run.run_id)
        if run.has_ended:
            self._judge(run, time.time())
            self.changing.pop(run.run_id, None)
        self._put_waited_for(run)
        (self.held.add if is_held(run) and not run.foreign else self.held.discard)(run.run_id)
        for snapshot, step in ((old, -1), (run, +1)):
            self._add_up(snapshot, step)

    def _forget(self, run_id: str) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        self.silence.forget(run_id)
        self.changing.pop(run_id, None)
        self._conversations.get(run.child_session_id or "", set()).discard(run_id)
        noted_as = (self.unseen, self.unread, self.questions, self.handed_over, self.held)
        for noted in (*noted_as, *self.waited_for.values(), self.marked, self.waiting, self.remote, self.open_remote):
            noted.discard(run_id)
        of_agent = self.by_agent[run.meta.agent]
        of_agent.discard(run_id)
        if not of_agent:
            del self.by_agent[run.meta.agent]
        self._add_up(run, -1)

    def _put_waited_for(self, run: RunSnapshot) -> None:
        meta = run.meta
        if meta.background:
            return
        runs = self.waited_for[meta.launched_by.kind not in _PARENTS]
        (runs.add if run.status is RunStatus.RUNNING and not run.foreign else runs.discard)(run.run_id)

    def _add_up(self, run: RunSnapshot | None, step: int) -> None:
        """Add a run to the totals, or subtract it; untrusted runs are not counted."""
        if run is None or run.foreign:
            return
        self.whole = self.whole.plus(run, step)
        if run.meta.created_at >= self._midnight:
            self.today = self.today.plus(run, step)

    def _begin_day(self) -> None:
        """Start the day's totals again after midnight."""
        if now_iso() < self._next_midnight:
            return
        self._midnight, self._next_midnight = midnights()
        self.today = Totals()
        for run in self._runs.values():
            if not run.foreign and run.meta.created_at >= self._midnight:
                self.today = self.today.plus(run, +1)


# --- idle runs -------------------------------------------------------------------------------------------------------

LATE_S = 5.0
"""After so many seconds without a check, the app itself was suspended: its runs' new output is still unread."""
CATCH_UP_S = 5.0
"""Seconds for reading that output; until then no run counts as idle."""


class SilenceWatch:
    """Times are those of `time.monotonic`; a check costs a comparison until the next run is due."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        """When each running run becomes idle without new output."""
        self._next = math.inf
        """No run is due before."""
        self._looked_at: float | None = None
        self._trusted_from = -math.inf
        self.silent: set[str] = set()
        """Changed only by this watch."""
        self._seen: set[str] = set()
        """Idle runs that you have looked at."""

    @property
    def needing(self) -> set[str]:
        """The idle runs not looked at since they became idle."""
        return self.silent - self._seen

    def put(self, run: RunSnapshot) -> None:
        """Record a new or changed run; new output ends its idle state."""
        due = run.silent_from
        if due == self._due.get(run.run_id):
            return
        self.forget(run.run_id)
        if due is not None:
            self._due[run.run_id] = due
            self._next = min(self._next, due)

    def forget(self, run_id: str) -> None:
        self._due.pop(run_id, None)
        self.silent.discard(run_id)
        self._seen.discard(run_id)

    def look(self, clock: float) -> set[str]:
        """Return the runs that have become idle since the last check."""
        if self._looked_at is not None and clock - self._looked_at > LATE_S:
            self._trusted_from = clock + CATCH_UP_S
        self._looked_at = clock
        if clock < self._next or clock < self._trusted_from:
            return set()
        due = {run_id for run_id, moment in self._due.items() if moment <= clock}
        self._next = min((moment for moment in self._due.values() if moment > clock), default=math.inf)
        became = due - self.silent
        self.silent |= became
        return became

    def mark_seen(self, run_id: str) -> bool:
        """Record that a run was looked at; return whether it is idle and was not looked at before."""
        if run_id not in self.silent or run_id in self._seen:
            return False
        self._seen.add(run_id)
        return True
