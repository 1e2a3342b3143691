"""An engine without disk or processes: tests script its updates, and check its recorded calls."""

from __future__ import annotations

import json
import os
import queue
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import structs
from subdeck.core import paths
from subdeck.core.agents.agent import AgentChoice
from subdeck.core.budget.allowance import DaySpending
from subdeck.core.config.settings import Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.errors import BudgetExceeded, RunBusy, SubdeckError
from subdeck.core.paths import Project
from subdeck.core.presets.catalog import Preset, PresetCatalog, PresetProblem
from subdeck.core.project.follower import Stop, Update
from subdeck.core.project.registry import count
from subdeck.core.project.talk import Sent
from subdeck.core.run.changes import Changes
from subdeck.core.run.comparison import Side
from subdeck.core.run.events import AssistantText, Event, RunEnded, RunStarted, ToolCall, ToolResult, encode_event
from subdeck.core.run.inbox import EntryKind
from subdeck.core.run.model import LaunchedBy, PresetSource, RunMeta, RunResult, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.runners.tmux import AttachInfo
from subdeck.core.search import scan
from subdeck.core.search.pattern import Pattern
from subdeck.core.search.process import search_apart
from subdeck.core.search.scan import Found
from subdeck.core.spec.request import RunRequest
from subdeck.core.system.line_file import Chunk, LineFile
from subdeck.core.work.deletion import Unmerged
from subdeck.core.work.operation import SAVE, Act, ActKind, Operation, Plan, TakenBack
from subdeck.core.work.save import SavePlan
from subdeck.core.work.source import Difference

from ..factories import make_snapshot, make_state

START = datetime.now(UTC) - timedelta(minutes=30)


def run_id(number: int) -> str:
    """Return an id with the order of its number, at any time of day."""
    return f"20260101-{number:06d}-{number:06x}"


def a_run(number: int = 1, status: str = "running", **fields: Any) -> RunSnapshot:
    """Return a snapshot with defaults for other fields; `meta_…` arguments go into the meta."""
    meta_fields = {name[5:]: fields.pop(name) for name in list(fields) if name.startswith("meta_")}
    meta: dict[str, Any] = {
        "run_id": run_id(number),
        "task": f"task {number}",
        "cwd": "/src/shop",
        "agent": "offline",
        "agent_command": ("offline",),
        "runner": "process",
        "created_at": stamp(number),
        "launched_by": LaunchedBy("operator", "app"),
        "background": True,
        "preset": "repo-scout",
        "preset_source": PresetSource.PROJECT,
        "requested_model": "fake/test",
        "resolved_model": "fake/test",
    }
    times: dict[str, Any] = {} if status == "queued" else {"started_at": stamp(number)}
    if status not in ("queued", "running"):
        times |= {"duration_ms": 31_000, "ended_at": stamp(number + 31)}
    return make_snapshot(RunMeta(**(meta | meta_fields)), status, **(times | fields))


def stamp(second: int) -> str:
    return (START + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def a_preset(name: str = "repo-scout", **fields: Any) -> Preset:
    known: dict[str, Any] = {
        "description": "Finds things.",
        "source": PresetSource.PROJECT,
        "path": f"/src/shop/.pi/subagents/{name}.md",
        "model": "fake/test",
        "tools": ("read", "grep"),
    }
    return Preset(name=name, **(known | fields))


def some_events(start: int = 1, files: int = 3) -> list[Event]:
    """Return events of an agent that reads files, three for each file."""
    events: list[Event] = [RunStarted(seq=start, ts=stamp(start), pid=1, child_pid=2, attempt=1, max_attempts=1)]
    for number in range(files):
        seq = start + 1 + 3 * number
        path = f"src/file_{number}.py"
        events += [
            AssistantText(seq=seq, ts=stamp(seq), text=f"I look at {path} now."),
            ToolCall(seq=seq + 1, ts=stamp(seq), tool_call_id=str(seq), tool_name="read", args={"path": path}),
            ToolResult(
                seq=seq + 2, ts=stamp(seq), tool_call_id=str(seq), tool_name="read", is_error=False, content="x\n"
            ),
        ]
    return events


def _encoded(event: Event) -> bytes:
    try:
        return encode_event(event)
    except UnicodeEncodeError:  # a lone surrogate, which no file can contain
        return json.dumps(msgspec.to_builtins(event)).encode() + b"\n"


def ended(seq: int, status: str = "completed", reason: str = "done") -> RunEnded:
    return RunEnded(seq=seq, ts=stamp(seq), status=status, reason=reason)


class SlowFile(LineFile):
    """A file with its end readable at once, and the rest only when its disk is released."""

    def __init__(self, path: str, disk: threading.Event) -> None:
        super().__init__(path)
        self._disk = disk

    def chunks_before(self, end: int) -> Iterator[Chunk]:
        for number, chunk in enumerate(super().chunks_before(end)):
            if number:
                self._disk.wait()
            yield chunk


class FakeWork:
    """The changes of runs, set by the test."""

    def __init__(self) -> None:
        self.known: dict[str, Changes] = {}
        """The changes of running runs, by run id."""
        self.patches: dict[str, bytes] = {}
        self.looks: list[str] = []
        self.answers: dict[str, str] = {}
        self.differences: dict[tuple[str, str], Difference | SubdeckError] = {}
        self.plans: dict[Operation, Any] = {}
        """The plan of each operation, or the error that refuses it."""
        self.asked: list[tuple[Operation, str, dict[str, Any]]] = []
        """Each planned operation, with its run and options."""
        self.done: list[tuple[Operation, Plan, str]] = []
        """Each executed operation, with its plan and message."""

    def changes(self, run: RunSnapshot) -> Changes | None:
        self.looks.append(run.run_id)
        return run.changes or self.known.get(run.run_id)

    def patch(self, run: RunSnapshot) -> bytes:
        return self.patches.get(run.run_id, b"")

    def side(self, run: RunSnapshot) -> Side:
        return Side(run=run, changes=self.changes(run), answer=self.answers.get(run.run_id, ""))

    def difference(self, run: RunSnapshot, other: RunSnapshot) -> Difference:
        found = self.differences[run.run_id, other.run_id]
        if isinstance(found, SubdeckError):
            raise found
        return found

    def plan(self, operation: Operation, run: RunSnapshot, /, **options: Any) -> Plan:
        self.asked.append((operation, run.run_id, options))
        if operation is SAVE:
            name = str(options["name"])
            return SavePlan(run_id=run.run_id, run="the run", branch=name, root="/", tip="a", made="/")
        plan = self.plans[operation]
        if isinstance(plan, Exception):
            raise plan
        return plan

    def act(self, plan: Plan, message: str = "") -> Act:
        self.done.append((plan.operation, plan, message))
        return Act("1", plan.operation.kind or ActKind.APPLY, plan.run, "2026-11-23T03:00:00.000Z")

    def root(self, run: RunSnapshot) -> str:
        return run.meta.cwd


class FakeEngine:
    """A fake core.engine.Engine; `tell` makes an update like a change on disk."""

    def __init__(self, *runs: RunSnapshot, presets: Sequence[Preset] = (), problems: Sequence[PresetProblem] = ()):
        self.project = Project("/src/shop")
        self.cwd = "/src/shop"
        self.settings = Settings()
        self.catalog = PresetCatalog(tuple(presets), tuple(problems), ("/src/shop/.pi/subagents",))
        self.runs = {run.run_id: run for run in runs}
        self.directory = tempfile.mkdtemp()
        """The directory of the runs' files."""
        weakref.finalize(self, shutil.rmtree, self.directory, ignore_errors=True)
        self.read_runs: list[str] = []
        self.disk = threading.Event()
        """While cleared, only the end of a transcript is readable."""
        self.disk.set()
        self.launched: list[RunRequest] = []
        self.stopped: list[tuple[tuple[str, ...], bool]] = []
        self.deleted: list[str] = []
        self.given_up: list[str] = []
        self.lost: tuple[str, ...] = ()
        """Runs that have left the trash."""
        self.acts: list[Act] = []
        self.work = FakeWork()
        self.claimed: list[str] = []
        self.untold: tuple[RunSnapshot, ...] = ()
        self.launch_error: Exception | None = None
        self.spent_today: DaySpending | None = None
        self.stop_error: Exception | None = None
        self.problems: tuple[SubdeckError, ...] = ()
        self.told: list[tuple[str, ...]] = []
        self.read: list[str] = []
        """The hashes of the requests that were replied to."""
        """The calls to interactive runs: kind, run and content."""
        self.talk_errors: dict[str, SubdeckError] = {}
        """By run: the reason why messages to it are refused."""
        self.attach: AttachInfo | SubdeckError = SubdeckError("it has no pane")
        self.hand: tuple[str, ...] = ("by-hand",)
        self.taken_over: list[str] = []
        self.deaf = False
        self.held = False
        self.moved: list[tuple[str, int]] = []
        self.files: dict[str, str] = {}
        """Each run's files, from name to path."""
        self.faults: list[Exception] = []
        """The next errors of following the runs."""
        self.hangs: list[threading.Event] = []
        """The next events that following the runs waits for."""
        self._was_followed = False
        self._queue: queue.Queue[Update] = queue.Queue()
        self._queue.put(self._update(tuple(runs), presets_changed=True))

    def tell(self, *runs: RunSnapshot, removed: Sequence[str] = (), presets_changed: bool = False) -> None:
        """Report these runs as changed in an update."""
        former = dict(self.runs)
        self.runs |= {run.run_id: run for run in runs}
        for name in removed:
            self.runs.pop(name, None)
        over = tuple(
            run for run in runs if run.has_ended and (old := former.get(run.run_id)) is not None and not old.has_ended
        )
        self._queue.put(self._update(runs, over, tuple(removed), presets_changed))

    def write(self, name: str, *events: Event) -> None:
        """Append events to a run."""
        self.write_lines(name, paths.EVENTS, b"".join(map(_encoded, events)))

    def write_lines(self, name: str, file: str, content: bytes) -> None:
        """Append raw lines to a file of a run."""
        os.makedirs(os.path.join(self.directory, name), exist_ok=True)
        with open(os.path.join(self.directory, name, file), "ab") as opened:
            opened.write(content)

    def _update(
        self,
        runs: tuple[RunSnapshot, ...],
        over: tuple[RunSnapshot, ...] = (),
        removed: tuple[str, ...] = (),
        presets_changed: bool = False,
    ) -> Update:
        return Update(
            runs=runs,
            removed=removed,
            ended=over,
            counts=count(self.runs.values()),
            background=count(run for run in self.runs.values() if run.meta.background),
            complete=True,
            presets_changed=presets_changed,
        )

    # --- the interface of Engine ---------------------------------------------------------------------------------

    def read_settings(self) -> Settings:
        return self.settings

    def presets(self) -> PresetCatalog:
        return self.catalog

    def agent(self) -> AgentChoice:
        return AgentChoice("offline", ("offline",), ("read", "grep"), False, note="pi is not on PATH")

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.project, self.cwd, self.settings)

    def check(self, request: RunRequest, *, asks: bool = False) -> tuple[SubdeckError, ...]:
        return self.problems

    def limited_spending(self) -> DaySpending | None:
        return self.spent_today

    def launch(self, requests: Sequence[RunRequest], *, background: bool) -> tuple[RunSnapshot, ...]:
        assert background
        if self.launch_error and not (isinstance(self.launch_error, BudgetExceeded) and requests[0].over_budget):
            raise self.launch_error
        self.launched += requests
        run = a_run(900 + len(self.launched), meta_task=requests[0].task, meta_preset=requests[0].preset or "")
        self.tell(run)
        return (run,)

    def meta(self, name: str) -> RunMeta:
        return self.runs[name].meta

    def result(self, name: str) -> RunResult | None:
        return None

    def stop(self, names: Iterable[str], *, force: bool = False) -> tuple[str, ...]:
        if self.stop_error:
            raise self.stop_error
        told = tuple(name for name in names if not self.runs[name].has_ended)
        self.stopped.append((told, force))
        return told

    def send(self, name: str, text: str) -> Sent:
        return self._sent(EntryKind.MESSAGE, name, text)

    def interrupt(self, name: str) -> Sent:
        return self._sent(EntryKind.INTERRUPT, name)

    def reply(self, name: str, request_id: str, verdict: Verdict, text: str = "", read: str = "") -> Sent:
        self.read.append(read)
        return self._sent(EntryKind.REPLY, name, request_id, verdict, text)

    def _sent(self, kind: EntryKind, name: str, *what: str) -> Sent:
        if error := self.talk_errors.get(name):
            raise error
        self.told.append((kind, name, *what))
        return Sent(name, f"m{len(self.told)}", kind, 0)

    def move_in_queue(self, name: str, step: int) -> int:
        self.moved.append((name, step))
        return len(self.moved)

    def is_queue_held(self) -> bool:
        return self.held

    def hold_queue(self, held: bool) -> None:
        self.held = held

    def delete(self, names: Iterable[str]) -> tuple[str, ...]:
        gone = tuple(names)
        self.deleted += gone
        self._trash = {name: self.runs[name] for name in gone}
        self.act(ActKind.DELETE_RUNS, "1 run" if len(gone) == 1 else f"{len(gone)} runs", {"runIds": gone})
        self.tell(removed=gone)
        return gone

    def act(self, kind: ActKind, words: str, data: dict[str, Any] | None = None) -> None:
        """Record an act that can be undone."""
        self.acts.append(Act(str(len(self.acts)), kind, words, paths.now_iso(), data or {}))

    def give_up(self, run_id: str) -> None:
        self.given_up.append(run_id)
        self.tell(structs.replace(self.runs[run_id], state=make_state("failed", reason="lost"), elsewhere=False))

    def unmerged(self, names: Iterable[str]) -> tuple[Unmerged, ...]:
        """No run has a worktree."""
        return ()

    def last_act(self) -> Act | None:
        return self.acts[-1] if self.acts else None

    def take_back(self, act: Act) -> TakenBack:
        self.acts.remove(act)
        if act.kind is not ActKind.DELETE_RUNS:
            return TakenBack(f"undid {act.title}")
        back = tuple(name for name in act.data["runIds"] if name not in self.lost)
        self.tell(*(self._trash[name] for name in back))
        if len(back) < len(act.data["runIds"]):
            raise RunBusy(f"{len(back)} of {len(act.data['runIds'])} restored")
        return TakenBack(f"brought back {act.words}", run_ids=back)

    def purge(self, names: Iterable[str] | None = None) -> None:
        """Nothing in the trash is old."""

    def updates(self, stop: Stop, *, shown: Callable[[], Container[str]] | None = None) -> Iterator[Update]:
        if self._was_followed:
            yield self._update(tuple(self.runs.values()), presets_changed=True)
        self._was_followed = True
        while not stop.is_set():
            if self.faults:
                raise self.faults.pop()
            if self.hangs:
                self.hangs.pop().wait(60)
            try:
                yield self._queue.get(timeout=0.02)
            except queue.Empty:
                yield self._update(())

    def line_file(self, name: str, file: str) -> LineFile:
        self.read_runs.append(name)
        return SlowFile(os.path.join(self.directory, name, file), self.disk)

    def search(
        self,
        pattern: Pattern,
        run_ids: Iterable[str] | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        apart: bool = False,
    ) -> Iterator[Found]:
        search = search_apart if apart else scan.search
        wanted = self.runs if run_ids is None else set(self.runs).intersection(run_ids)
        return search(self.directory, sorted(wanted, reverse=True), pattern, cancelled)

    def artifacts(self, name: str) -> dict[str, str]:
        return self.files

    def wait(self, names: Sequence[str], *, timeout: float | None = None) -> tuple[RunSnapshot, ...]:
        """Stopped runs have ended, unless a test makes them ignore stops."""
        if not self.deaf:
            self.tell(*(structs.replace(self.runs[name], state=make_state("aborted")) for name in names))
        return tuple(self.runs[name] for name in names)

    def attach_command(self, name: str) -> AttachInfo:
        if isinstance(self.attach, SubdeckError):
            raise self.attach
        return self.attach

    def take_over(self, run_id: str) -> tuple[str, ...]:
        self.taken_over.append(run_id)
        return self.hand

    def claim(self, run: RunSnapshot) -> bool:
        self.claimed.append(run.run_id)
        return True

    def unseen(self) -> tuple[RunSnapshot, ...]:
        return self.untold
