"""What a parent session is told of its background runs: counts, and each end once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..project.follower import Update
from ..project.registry import count
from ..project.session import BG_DONE, BG_UPDATE, end_data, end_message
from ..run.describe import background_counts, latest
from ..run.model import RunMeta, RunReason, RunStatus
from ..run.snapshot import Counts, RunSnapshot
from ..text.plain import one_line
from .background import is_own
from .results import counts_fields

NOTICE_LEVELS = {RunStatus.COMPLETED: "info", RunStatus.ABORTED: "warning", RunStatus.FAILED: "error"}
"""How urgent the notice of a run's end is."""


class SessionWatch:
    """Turn the updates of an engine into lines for a parent session."""

    def __init__(self, session: str, open_runs: Iterable[str]) -> None:
        """`open_runs` are those that the parent believes unfinished: their ends are reported even if long past."""
        self._session = session
        self._expected = dict.fromkeys(open_runs)
        self._named = tuple(self._expected)
        self._runs: dict[str, RunSnapshot] = {}
        self._counts: Counts | None = None
        self.ended: list[RunSnapshot] = []
        """The runs whose ends the last `take` reported."""

    def owns(self, meta: RunMeta) -> bool:
        """Tell whether a run is of the session, in the foreground or in the background."""
        return meta.launched_by.session == self._session or meta.run_id in self._named

    def take(self, update: Update) -> Iterator[dict[str, Any]]:
        """Yield ends before counts: the first counts say that every end so far has been reported.

        The end of a run that a newer subdeck wrote is not reported: only that version knows how it ended.
        """
        self.ended = []
        ended = {run.run_id for run in update.ended}
        own = [run for run in reversed(update.runs) if is_own(run.meta, self._session, self._named)]
        for run in own:
            self._runs[run.run_id] = run
        for run_id in update.removed:
            self._runs.pop(run_id, None)
        for run in own:
            if run.has_ended and not run.newer_schema and (run.run_id in ended or run.run_id in self._expected):
                self._expected.pop(run.run_id, None)
                self.ended.append(run)
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
            yield {"type": "counts", **counts_fields(counts), "text": background_counts(counts)}

    def _missing(self, update: Update) -> tuple[str, ...]:
        """Return the expected runs whose directory is not there."""
        if not update.complete:
            return ()
        return tuple(run_id for run_id in self._expected if run_id not in self._runs)


def end_line(run: RunSnapshot) -> dict[str, Any]:
    """Return the end of a run as an entry and a message of the parent session, and as a notice to a person."""
    end = f"{run.meta.title} {run.meta.short_id} {run.status}"
    about = one_line(run.meta.description or run.meta.task, 80)
    why = "" if run.status is RunStatus.COMPLETED else f" ({run.reason}): {one_line(latest(run), 160)}"
    return {
        "type": "ended",
        "run": {"preset": run.meta.preset, **end_data(run)},
        "entry": {"customType": BG_UPDATE, "data": end_data(run)},
        "message": end_message(run),
        "notice": {"text": f"{end}{why} — {about}", "level": NOTICE_LEVELS.get(run.status, "info")},
    }


def _gone(run_id: str) -> dict[str, Any]:
    """Return the end of a run that was deleted, so that nobody waits for it."""
    data = {
        "runId": run_id,
        "status": RunStatus.FAILED.value,
        "reason": RunReason.LOST.value,
        "endedAt": None,
        "message": "its directory is not there: it was deleted, or belongs to another project",
    }
    text = f"background run {run_id[-6:]} is gone: {data['message']}"
    return {
        "type": "ended",
        "run": {"preset": "", **data},
        "entry": {"customType": BG_UPDATE, "data": data},
        "message": {"customType": BG_DONE, "content": text, "display": True, "details": data},
        "notice": {"text": text, "level": "warning"},
    }
