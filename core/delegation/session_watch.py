"""What a parent session has to be told of its background runs: counts, and each end once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..project.follower import Update
from ..project.registry import count
from ..project.session import BG_DONE, BG_UPDATE, end_data, end_message
from ..run.describe import latest
from ..run.model import Counts, RunMeta, RunReason, RunSnapshot, RunStatus
from ..text.plain import one_line
from .answers import counts_row, counts_text
from .background import is_own

LEVELS = {RunStatus.COMPLETED: "info", RunStatus.ABORTED: "warning", RunStatus.FAILED: "error"}
"""How loud the end of a run is announced."""


class SessionWatch:
    """Takes the updates of an engine; `lines` are what is to be told, in their order."""

    def __init__(self, session: str, open_runs: Iterable[str]) -> None:
        """`open_runs` are the runs that go on as far as the parent knows: their ends are told even when they are
        long over."""
        self._session = session
        self._expected = dict.fromkeys(open_runs)
        self._named = tuple(self._expected)
        self._runs: dict[str, RunSnapshot] = {}
        self._counts: Counts | None = None
        self.told: list[RunSnapshot] = []
        """Whose ends the last update gave rise to."""

    def owns(self, meta: RunMeta) -> bool:
        """Tell whether a run, in whichever ground, is of the session."""
        return meta.launched_by.session == self._session or meta.run_id in self._named

    def take(self, update: Update) -> Iterator[dict[str, Any]]:
        """Tell the ends before the counts: the first counts say that all that was over has been told."""
        self.told = []
        ended = {run.run_id for run in update.ended}
        own = [run for run in reversed(update.runs) if is_own(run.meta, self._session, self._named)]
        for run in own:
            self._runs[run.run_id] = run
        for run_id in update.removed:
            self._runs.pop(run_id, None)
        for run in own:
            if run.has_ended and (run.run_id in ended or run.run_id in self._expected):
                self._expected.pop(run.run_id, None)
                self.told.append(run)
                yield end_line(run)
        for run_id in self._missing(update):
            del self._expected[run_id]
            yield _gone(run_id)
        if update.complete:
            yield from self._count()

    def _count(self) -> Iterator[dict[str, Any]]:
        counts = count(self._runs.values())
        if counts != self._counts:
            self._counts = counts
            yield {"type": "counts", **counts_row(counts), "text": counts_text(counts)}

    def _missing(self, update: Update) -> tuple[str, ...]:
        """Return the expected runs whose directory is not there."""
        if not update.complete:
            return ()
        return tuple(run_id for run_id in self._expected if run_id not in self._runs)


def end_line(run: RunSnapshot) -> dict[str, Any]:
    """Tell an end: to the parent's own entries, as a message into its session, and as a notice to a person."""
    told = f"{run.meta.title} {run.meta.short_id} {run.status}"
    about = one_line(run.meta.description or run.meta.task, 80)
    why = "" if run.status is RunStatus.COMPLETED else f" ({run.reason}): {one_line(latest(run), 160)}"
    return {
        "type": "ended",
        "run": {"preset": run.meta.preset, **end_data(run)},
        "entry": {"customType": BG_UPDATE, "data": end_data(run)},
        "message": end_message(run),
        "notice": {"text": f"{told}{why} — {about}", "level": LEVELS.get(run.status, "info")},
    }


def _gone(run_id: str) -> dict[str, Any]:
    """Tell the end of a run that was deleted, so that nobody waits for it."""
    data = {
        "runId": run_id,
        "status": RunStatus.FAILED.value,
        "reason": RunReason.LOST.value,
        "endedAt": None,
        "message": "its directory is not there: it was deleted, or belongs to another project",
    }
    said = f"background run {run_id[-6:]} is gone: {data['message']}"
    return {
        "type": "ended",
        "run": {"preset": "", **data},
        "entry": {"customType": BG_UPDATE, "data": data},
        "message": {"customType": BG_DONE, "content": said, "display": True, "details": data},
        "notice": {"text": said, "level": "warning"},
    }
