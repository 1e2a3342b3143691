"""The tool `subagent`: starts one or more runs, and its parent waits for the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ..engine import Engine
from ..errors import FollowingFailed, RunDeleted, SubdeckError
from ..project.follower import Stop, Update
from ..project.read_marks import mark_read
from ..run.describe import latest_line
from ..run.model import RunStatus, StopReason
from ..run.snapshot import RunSnapshot
from ._arguments import subagent_arguments
from ._launch import launch
from .parent import Parent
from .report import LiveRun, preset_names
from .results import (
    CallResult,
    ToolProgress,
    argument_error,
    end_fields,
    harmless,
    rejection,
    result_text,
    run_fields,
    run_line,
)
from .schema import names_hosts

Report = Callable[[ToolProgress], None]

DELETED = RunDeleted().what
LOST = {"status": RunStatus.FAILED.value, "reason": "lost", "answer": None, "error": DELETED}


class ProgressFailed(Exception):
    """Progress could not be reported; `cause` is the caller's exception."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def subagent(engine: Engine, params: object, *, parent: Parent, progress: Report | None, cancelled: Stop) -> CallResult:
    """Start the runs, report progress, and return when the last one has finished.

    Raises CallRejected, SubdeckError, ProgressFailed.
    """
    settings = engine.read_settings()
    parallel, tasks = subagent_arguments(params, isolated=settings.expose_isolated, hosts=names_hosts(settings))
    runs = launch(engine, tasks, parent, background=False, parallel=parallel)
    run_ids = [run.run_id for run in runs]
    if not runs:
        raise RunDeleted(where=engine.project.runs)
    call = _Call(engine, runs, progress, parallel=parallel)

    try:
        call.report()
        engine.wait(run_ids, on_update=call.take, stop=cancelled)
        if cancelled.is_set():
            _cancel(engine, run_ids)
            engine.wait(run_ids, on_update=call.take)
    except FollowingFailed as failed:
        _cancel(engine, run_ids)
        return call.unfollowed(failed)
    except BaseException:
        _cancel(engine, run_ids)
        raise
    result = call.result()
    if not cancelled.is_set():  # otherwise the result may never be read
        mark_read(engine.project.root, run_ids)
    return result


def _cancel(engine: Engine, run_ids: Sequence[str]) -> None:
    for run_id in run_ids:
        try:
            engine.stop((run_id,), reason=StopReason.CANCELLED)
        except (SubdeckError, OSError):
            continue  # stop the others anyway, and wait for this one


class _Call:
    """The runs of one call, as shown to the parent."""

    def __init__(self, engine: Engine, runs: Sequence[RunSnapshot], progress: Report | None, *, parallel: bool) -> None:
        names = preset_names(engine)
        self._engine = engine
        self._progress = progress
        self._parallel = parallel
        self._live = {run.run_id: LiveRun(engine, run, names.get(run.meta.preset_path or "", "")) for run in runs}

    def take(self, update: Update) -> None:
        """Update the changed runs; if one report is due, report all of them together."""
        for run in update.runs:
            self._live[run.run_id].see(run)
        if any(live.is_due() for live in self._live.values()):
            self.report()

    def report(self) -> None:
        if self._progress is None:
            return
        rows = [{**_row(live.run), "details": msgspec.to_builtins(live.report())} for live in self._live.values()]
        text = "\n".join(_progress_line(live.run) for live in self._live.values())
        try:
            self._progress(ToolProgress(harmless(text), harmless(self._fields(rows))))
        except Exception as cause:
            raise ProgressFailed(cause) from cause

    def result(self) -> CallResult:
        if any(live.drain() or live.is_pending for live in self._live.values()):
            self.report()
        texts: list[str] = []
        rows: list[dict[str, Any]] = []
        detailed: list[dict[str, Any]] = []
        for run_id, live in self._live.items():
            result = self._engine.result(run_id)
            texts.append(result_text(live.run, result) if result else f"**Status:** ERROR\n\n---\n\n{DELETED}")
            rows.append(_row(live.run) | (end_fields(live.run, result) if result else LOST))
            detailed.append({**rows[-1], "details": msgspec.to_builtins(live.final(live.run, result))})
        structured = self._fields(rows)
        completed = structured["completed"]
        if self._parallel:
            names = [f"## {_name(live.run)}: {live.run.status}" for live in self._live.values()]
            texts = [f"{name}\n\n{text}" for name, text in zip(names, texts, strict=True)]
            texts.insert(0, f"{completed} of {len(rows)} tasks completed")
        return CallResult("\n\n".join(texts), self._fields(detailed), structured, is_error=not completed)

    def unfollowed(self, failed: FollowingFailed) -> CallResult:
        """Return the started runs, which were asked to stop because they can no longer be followed."""
        now_by_id = {run.run_id: run for run in self._engine.snapshots(self._live)}
        runs = [now_by_id.get(run_id, live.run) for run_id, live in self._live.items()]
        rows = [_row(run) | (end_fields(run, self._engine.result(run.run_id)) if run.has_ended else {}) for run in runs]
        hint = "its runs were asked to stop; subdeck status shows their state. Set SUBDECK_LOG=FILE to log details"
        error = argument_error(failed.what, where="subdeck", hint=hint)
        rejected = rejection([error], **self._fields(rows))
        text = "\n".join([rejected.text, *(f"- {run_line(run)}" for run in runs)])
        return CallResult(text, rejected.details, rejected.structured, is_error=True)

    def _fields(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        completed = sum(row["status"] == RunStatus.COMPLETED for row in rows)
        return {"mode": "parallel" if self._parallel else "single", "completed": completed, "runs": rows}


def _row(run: RunSnapshot) -> dict[str, Any]:
    return {"index": run.meta.group.index if run.meta.group else 0, **run_fields(run)}


def _progress_line(run: RunSnapshot) -> str:
    doing = latest_line(run, 160)
    return f"{_name(run)}: {run.status}" + (f" — {doing}" if doing else "")


def _name(run: RunSnapshot) -> str:
    group = run.meta.group
    return f"[{group.index + 1}/{group.size}] {run.meta.title}" if group else run.meta.title
