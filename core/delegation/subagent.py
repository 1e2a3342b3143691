"""The tool `subagent`: one child or several, and their parent waits for the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import SubdeckError
from ..project.follower import Update
from ..run.describe import latest
from ..run.model import RunResult, RunSnapshot, RunStatus
from ..text.plain import one_line
from . import answers as rows
from .answers import ToolAnswer, ToolProgress, answer_for_parent
from .arguments import read_subagent
from .launch import launch
from .live_run import LiveRun, PresetNames
from .parent import Parent

if TYPE_CHECKING:
    from ..engine import Engine
    from ..project.watch import Stop

Tell = Callable[[ToolProgress], None]

DELETED = "the run was deleted while it was waited for"


class Untold(Exception):
    """Progress could not be told; `fault` is what the caller raised."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.fault = fault


def subagent(engine: Engine, params: object, *, parent: Parent, progress: Tell | None, cancelled: Stop) -> ToolAnswer:
    """Start the runs, tell how they go, answer when the last has ended. Raises Refused, SubdeckError, Untold."""
    parallel, asked = read_subagent(params, isolated=engine.read_settings().expose_isolated)
    runs = launch(engine, asked, parent, background=False, parallel=parallel)
    run_ids = [run.run_id for run in runs]
    if not runs:
        raise SubdeckError(DELETED, where=engine.project.runs)
    board = _Board(engine, runs, progress, parallel=parallel)

    try:
        board.tell()
        engine.wait(run_ids, on_update=board.take, stop=cancelled)
        if cancelled.is_set():
            _cancel(engine, run_ids)
            engine.wait(run_ids, on_update=board.take)
    except BaseException:
        _cancel(engine, run_ids)
        raise
    return board.answer()


def _cancel(engine: Engine, run_ids: Sequence[str]) -> None:
    for run_id in run_ids:
        try:
            engine.stop((run_id,), reason="cancelled")
        except (SubdeckError, OSError):
            continue  # the others are to be told all the same; this one is waited for


class _Board:
    """The runs of one call as their parent sees them."""

    def __init__(self, engine: Engine, runs: Sequence[RunSnapshot], progress: Tell | None, *, parallel: bool) -> None:
        names = PresetNames(engine)
        self._engine = engine
        self._progress = progress
        self._parallel = parallel
        self._live = {run.run_id: LiveRun(engine, run, display_name=names.of(run.meta)) for run in runs}

    def take(self, update: Update) -> None:
        """Take in what changed, and tell it when that is due: all runs together, at most once in `EVERY` seconds."""
        for run in update.runs:
            self._live[run.run_id].see(run)
        if any(live.is_due() for live in self._live.values()):
            self.tell()

    def tell(self) -> None:
        if self._progress is None:
            return
        told = [{**self._row(live.run), "details": msgspec.to_builtins(live.report())} for live in self._live.values()]
        text = "\n".join(self._line(live.run) for live in self._live.values())
        try:
            self._progress(ToolProgress(text, self._fields(told)))
        except Exception as fault:
            raise Untold(fault) from fault

    def answer(self) -> ToolAnswer:
        if any(live.drain() or live.is_pending for live in self._live.values()):
            self.tell()
        results = {run_id: self._engine.result(run_id) for run_id in self._live}
        structured: list[dict[str, Any]] = []
        detailed: list[dict[str, Any]] = []
        for run_id, live in self._live.items():
            result = results[run_id]
            row = self._row(live.run) | _end(live.run, result)
            structured.append(row)
            detailed.append(row | {"details": msgspec.to_builtins(live.final(live.run, result))})
        return ToolAnswer(
            self._text([(live.run, results[run_id]) for run_id, live in self._live.items()]),
            self._fields(detailed),
            self._fields(structured),
            is_error=not any(row["status"] == RunStatus.COMPLETED for row in structured),
        )

    def _text(self, ended: Sequence[tuple[RunSnapshot, RunResult | None]]) -> str:
        texts = [
            answer_for_parent(result) if result else f"**Status:** ERROR\n\n---\n\n{DELETED}" for _, result in ended
        ]
        if not self._parallel:
            return texts[0]
        done = sum(run.status is RunStatus.COMPLETED for run, _ in ended)
        headed = [f"## {self._name(run)}: {run.status}\n\n{text}" for (run, _), text in zip(ended, texts, strict=True)]
        return "\n\n".join((f"{done} of {len(ended)} tasks completed", *headed))

    def _fields(self, runs: list[dict[str, Any]]) -> dict[str, Any]:
        completed = sum(row["status"] == RunStatus.COMPLETED for row in runs)
        return {"mode": "parallel" if self._parallel else "single", "completed": completed, "runs": runs}

    def _row(self, run: RunSnapshot) -> dict[str, Any]:
        return {"index": run.meta.group.index if run.meta.group else 0, **rows.run_row(run)}

    def _line(self, run: RunSnapshot) -> str:
        said = one_line(latest(run), 160)
        return f"{self._name(run)}: {run.status}" + (f" — {said}" if said else "")

    def _name(self, run: RunSnapshot) -> str:
        """Name a task by index and preset."""
        group = run.meta.group
        return f"[{group.index + 1}/{group.size}] {run.meta.title}" if group else run.meta.title


def _end(run: RunSnapshot, result: RunResult | None) -> dict[str, Any]:
    if result is not None:
        return rows.end_fields(run, result)
    return {"status": RunStatus.FAILED.value, "reason": "lost", "answer": None, "error": DELETED}
