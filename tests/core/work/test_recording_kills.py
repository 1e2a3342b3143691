"""Wrappers that are killed while they record a run's changes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts
from subdeck.core.run.model import RunReason, WorktreeFrom
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest
from subdeck.core.system import processes

from tests.factories import (
    events_of,
    open_engine,
    result_of,
    run_dir,
    run_to_end,
    run_wrappers_with,
    start,
    started,
    wait_for_end,
)
from tests.waiting import wait_until

from ..git.repositories import make

pytestmark = pytest.mark.processes

HANG = """
import os, signal
from subdeck.core.work import snapshots
before = snapshots.{0}
def hang(*arguments):
    {1}
    os.close(os.open({2!r}, os.O_CREAT))
    signal.pause()
snapshots.{0} = hang
"""
DIE = """
import os, signal
from subdeck.core.wrapper import supervise
def die(*arguments):
    os.close(os.open({2!r}, os.O_CREAT))
    signal.pause()
supervise.{0} = die
"""
UNTOLD = """
import signal
from subdeck.core.wrapper._attempt import Attempt
Attempt._announce = lambda *_: signal.pause()
"""
"""The wrapper hangs after it has started the agent, before it writes that down."""
QUICK_LAUNCH = "subdeck.core.launch.start.EVENT_TIMEOUT_S"
"""Time that a launch waits for a first event, which does not come while the baseline hangs."""
NOTE = "not recorded: its wrapper died before"


def kill_wrapper(engine: Engine, run: RunSnapshot) -> None:
    """Kill the wrapper itself: a run's lowest pid may belong to a process that the wrapper has forked."""
    facts = artifacts.read_runner(str(run_dir(engine, run)))
    assert facts is not None
    os.kill(facts.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("change", "name", "after", "note"),
    [
        pytest.param(HANG, "begin", "pass", None, id="before-the-baseline"),
        pytest.param(HANG, "begin", "before(*arguments)", None, id="after-the-baseline"),
        pytest.param(HANG, "finish", "pass", NOTE, id="before-the-end"),
        pytest.param(HANG, "finish", "before(*arguments)", NOTE, id="after-the-end"),
        pytest.param(DIE, "conclude", "", NOTE, id="before-the-result"),
    ],
)
def test_killed(
    change: str, name: str, after: str, note: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lost run reports only known changes, leaves no process or lock, and the next run is not shared."""
    repository = make(tmp_path / "repository", {"a.py": "one\ntwo\n"})
    reached = tmp_path / "reached"
    with monkeypatch.context() as changed:
        run_wrappers_with(changed, change.format(name, after, str(reached)))
        changed.setattr(QUICK_LAUNCH, 0.1)
        engine = open_engine(repository)
        run = start(engine, "edit a.py two 2", "answer Done.")
        wait_until(reached.exists, "the place where it is killed")
    kill_wrapper(engine, run)
    lost = wait_for_end(engine, run.run_id)
    assert RunReason.LOST is lost.reason
    wait_until(lambda: not processes.marked(run.run_id), "the recorder to be gone")
    recorded = result_of(engine, lost).changes
    assert note == (recorded and recorded.note)
    if note:
        told = engine.work.changes(lost)
        assert ["a.py"] == [file.path for file in told.named]
    work = Path(paths.work_dir(engine.project, run.run_id))
    assert [] == list(work.rglob("*.lock")) or ["store.lock"] == [path.name for path in work.rglob("*.lock")]
    alone = result_of(engine, run_to_end(engine, "edit a.py one 1", "answer Done.")).changes
    assert ("1 file +1 −1", "") == (alone.words, alone.shared)


def test_a_kill_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killing a run does not wait for its changes to be recorded, and the result notes that."""
    repository = make(tmp_path / "repository", {"a.py": "one\n"})
    reached = tmp_path / "reached"
    run_wrappers_with(monkeypatch, HANG.format("finish", "pass", str(reached)))
    engine = open_engine(repository)
    run = start(engine, "edit a.py one 1", "answer Done.")
    wait_until(reached.exists, "the end to be recorded")
    engine.stop([run.run_id], force=True)
    (ended,) = engine.wait([run.run_id], timeout=10)
    assert "completed" == ended.status
    assert "not recorded: the run was killed" == ended.changes.note


def test_a_baseline_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets its task even if the baseline takes too long, and the result notes that it took too long."""
    repository = make(tmp_path / "repository", {"a.py": "one\n"})
    change = HANG.format("begin", "pass", str(tmp_path / "reached"))
    run_wrappers_with(monkeypatch, f"{change}\nfrom subdeck.core.wrapper import _recorder\n_recorder.BASELINE_S = 0.2")
    engine = open_engine(repository)
    run = run_to_end(engine, "edit a.py one 1", "answer Done.")
    assert "completed" == run.status
    assert "1 file +1 −1; not recorded: it took too long" == run.changes.words


def test_stopped_before_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run stopped while its baseline is recorded ends at once, without starting an agent."""
    repository = make(tmp_path / "repository", {"a.py": "one\n"})
    run_wrappers_with(monkeypatch, HANG.format("begin", "pass", str(tmp_path / "reached")))
    monkeypatch.setattr(QUICK_LAUNCH, 0.1)
    engine = open_engine(repository)
    run = start(engine, "edit a.py one 1", "answer Done.")
    wait_until((tmp_path / "reached").exists, "the baseline to have begun")
    engine.stop([run.run_id])
    (ended,) = engine.wait([run.run_id], timeout=5)
    assert ("aborted", None, None) == (ended.status, ended.started_at, ended.changes)
    assert "one\n" == (repository / "a.py").read_text()


def test_a_child_that_is_talked_to_comes_up_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interactive agent starts at once and gets its task when the baseline is ready."""
    repository = make(tmp_path / "repository", {"a.py": "one\n"})
    gate = tmp_path / "gate"
    wait = f"""
from subdeck.core.work import snapshots
before = snapshots.begin
def begin(*arguments):
    import os, time
    while not os.path.exists({str(gate)!r}):
        time.sleep(0.01)
    return before(*arguments)
snapshots.begin = begin
"""
    run_wrappers_with(monkeypatch, wait)
    engine = open_engine(repository)
    (run,) = engine.launch([RunRequest(task="look around", agent="offline")], background=True)
    started(engine, run)
    assert ["run_started"] == [str(event.__struct_config__.tag) for event in events_of(engine, run)]
    gate.touch()
    run = wait_for_end(engine, run.run_id)
    assert "completed" == run.status
    kinds = [str(event.__struct_config__.tag) for event in events_of(engine, run)]
    assert ["run_started", "baseline"] == kinds[:2]


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "before-its-start-is-told"])
def test_lost_in_a_worktree(is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost run's changes in its own worktree are the files there now, even if its start was not yet written down."""
    if not is_told:
        run_wrappers_with(monkeypatch, UNTOLD)
        monkeypatch.setattr(QUICK_LAUNCH, 0.1)
    engine = open_engine(make(tmp_path / "repository", {"a.py": "one\ntwo\n"}))
    reached = tmp_path / "reached"
    run = start(engine, "put a.py changed\\n", f"touch {reached}", "hang", worktree=WorktreeFrom.HEAD)
    wait_until(reached.exists, "the child to have written")
    kill_wrapper(engine, run)
    lost = wait_for_end(engine, run.run_id)
    assert RunReason.LOST is lost.reason
    assert is_told or lost.started_at is None
    told = engine.work.changes(lost)
    assert told is not None
    assert ("1 file +1 −2", "") == (told.words.partition(";")[0], told.shared)
    assert b"+changed\n" in engine.work.patch(lost)
