"""The engine as the page uses it. Every function may block: the server calls them in threads."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime

from msgspec import Struct

from ..engine import Engine
from ..paths import EVENTS
from ..project.talk import Reception, Sent, decision_on, settled
from ..run.changes import Changes
from ..run.describe import moment
from ..run.events import Decision, Message, Request
from ..run.model import RunResult, Verdict
from ..run.requests import request_hash
from ..run.snapshot import RunSnapshot
from ..system import files

NEWEST = 200
"""Finished runs that are looked at for those of today."""
PATCH_BYTES = 200_000
"""Bytes shown of a run's changes."""


class Overview(Struct, frozen=True):
    """The runs of the first page."""

    waiting: tuple[RunSnapshot, ...]
    """They need input, the longest wait first."""
    running: tuple[RunSnapshot, ...]
    """The other unfinished ones, newest first."""
    failed: tuple[RunSnapshot, ...]
    finished: tuple[RunSnapshot, ...]
    """Both of today, the last one first."""


class Details(Struct, frozen=True):
    """A run with everything that its page shows."""

    run: RunSnapshot
    result: RunResult | None
    changes: Changes | None


class Runs:
    """One project, for all browsers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._activity: tuple[tuple[str, int, int], ...] = ()
        self._state: tuple[object, ...] | None = None

    @property
    def root(self) -> str:
        return self._engine.project.root

    def overview(self) -> Overview:
        runs = self._engine.snapshots(last=NEWEST)
        waiting = sorted((run for run in runs if run.is_waiting), key=lambda run: run.requests[0].ts)
        today = datetime.now(UTC).astimezone().date()
        ended = [run for run in runs if run.end and _local_date(run.end.ended_at) == today]
        ended.sort(key=lambda run: run.end.ended_at if run.end else "", reverse=True)
        return Overview(
            waiting=tuple(waiting),
            running=tuple(run for run in runs if not run.has_ended and not run.is_waiting),
            failed=tuple(run for run in ended if run.status == "failed"),
            finished=tuple(run for run in ended if run.status != "failed"),
        )

    def run(self, run_id: str) -> RunSnapshot | None:
        return next(iter(self._engine.snapshots((run_id,))), None)

    def details(self, run_id: str) -> Details | None:
        run = self.run(run_id)
        if run is None:
            return None
        return Details(run, self._engine.result(run_id) if run.has_ended else None, self._engine.work.changes(run))

    def patch(self, run_id: str) -> tuple[RunSnapshot, bytes] | None:
        """Return a run's changes as git writes them. Raises SubdeckError, OSError."""
        run = self.run(run_id)
        return (run, self._engine.work.patch(run)) if run else None

    def decision(self, run_id: str, request_id: str) -> Decision | None:
        return decision_on(self._engine.project, run_id, request_id)

    def settled(self, run_id: str, sent_id: str) -> Decision | Message | None:
        return settled(self._engine.project, run_id, sent_id)

    def reply(self, run: RunSnapshot, request: Request, verdict: Verdict, text: str, by: str) -> Sent:
        """Reply to a request as it was shown. Raises SubdeckError if that is impossible, or another reply was first."""
        return self._engine.reply(run.run_id, request.id, verdict, text, request_hash(run.run_id, request), by=by)

    def reception(self, sent: Sent) -> Reception:
        """Return what follows the delivery of a reply."""
        return Reception(self._engine.project, sent)

    def send(self, run_id: str, text: str, by: str) -> Sent:
        """Send a message to a run. Raises SubdeckError if it takes none."""
        return self._engine.send(run_id, text, by=by)

    def state(self) -> tuple[object, ...]:
        """Return a value that differs if runs have started or finished, or have other requests.

        Without activity since the last call it costs one listing of the unfinished runs.
        """
        project = self._engine.project
        activity = tuple(
            (name, _written(f"{project.active}/{name}"), _written(f"{project.run_dir(name)}/{EVENTS}"))
            for name in sorted(files.names(project.active))
        )
        if self._state is None or activity != self._activity:
            self._activity = activity
            runs = self._engine.snapshots(last=0)
            self._state = tuple(
                (run.run_id, run.status, run.is_interrupted, *(request.id for request in run.requests)) for run in runs
            )
        return self._state


def _written(path: str) -> int:
    """Return when a file was last written, in nanoseconds; 0 if it is gone."""
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


def _local_date(iso: str) -> date | None:
    at = moment(iso)
    return at.astimezone().date() if at else None
