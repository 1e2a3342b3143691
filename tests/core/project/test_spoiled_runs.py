"""An agent that spoils its run's records does not change who is in charge of the run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts, second_copy
from subdeck.core.run.events import Request
from subdeck.core.run.model import RunReason, RunStatus, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import (
    copy_run,
    events_of,
    lives,
    open_engine,
    result_of,
    run_dir,
    run_to_end,
    run_wrappers_with,
    start,
    started,
    wait_for_end,
    write_settings,
)
from tests.waiting import wait_until

from ..offline_agent.offline_reader import SHOP, write_tree

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


def _replaced(by: str) -> str:
    """Remove and remake it, until the run writes nothing in between."""
    return f"until rm -rf {{it}} && {by}; do :; done"


WAYS = {
    "other content": _replaced("echo '{{}}' > {it}"),
    "written into": 'printf \'{{"type":"run_ended","status":"completed","reason":"done"}}\\n\' >> {it}',
    "empty": _replaced(": > {it}"),
    "emptied": ": > {it}",
    "deleted": _replaced("true"),
    "pipe": _replaced("mkfifo {it}"),
    "link to outside": _replaced("ln -sT {outside} {it}"),
    "link to another run": _replaced("ln -sT {other} {it}"),
    "hard link to another run": _replaced("ln -T {other} {it}"),
    "copy of another run": _replaced("cp -rT {other} {it}"),
    "directory": _replaced("mkdir -p {it}/full"),
    "device": _replaced("ln -sT /dev/zero {it}"),
    "without rights": "touch {it}; chmod 000 {it}",
    "replaced without rights": _replaced("mkdir {it} && touch {it}/full && chmod 000 {it}"),
}
"""Damage to the file `it`, in sh."""
FILES = (paths.META, paths.LOCK, paths.RUNNER, paths.STOP, paths.EVENTS, paths.INBOX, paths.RESULT, ".")
FORGED = (
    '{"schemaVersion":1,"runId":"%s","status":"completed","reason":"done","writtenBy":"wrapper",'
    '"finalText":"ALL TESTS PASS","endedAt":"2026-01-01T00:00:00.000Z","mark":"00000000000000000000000000000000"}'
)


def _has_sense(name: str, way: str) -> bool:
    """Return whether the damage is possible, and leaves anything to find."""
    if name in (paths.STOP, paths.RESULT) and way in ("deleted", "emptied"):
        return way == "emptied"
    if name == ".":
        return way in ("deleted", "link to outside", "pipe", "other content", "copy of another run", "without rights")
    if name == paths.INBOX:
        return way not in ("written into", "emptied", "copy of another run", "hard link to another run")
    if name == paths.LOCK:
        return way not in ("written into", "emptied")  # its content has no meaning
    return name != paths.META or way != "written into"


CASES = [(name, way) for name in FILES for way in WAYS if _has_sense(name, way)]


LOOK_OFTEN = """
from subdeck.core.wrapper import __main__ as wrapper, _queue as queue
queue.LOOK_FOR_STOP_S = 0.1
before = wrapper._load
def load(*parts):
    supervise = before(*parts)
    from subdeck.core.wrapper import records
    records.LOOK_S = 0.05
    return supervise
wrapper._load = load
"""
"""Makes wrappers check their records ten times a second."""


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def run_in_process(root: str, code: str) -> str:
    """Return the output of a new process, which remembers nothing about the project."""
    program = f"from subdeck.core.run import second_copy\n{code}"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


class Surroundings:
    """Files that no run may touch: a directory outside of the project's runs, and another run."""

    def __init__(self, engine: Engine, tmp_path: Path) -> None:
        self.outside = tmp_path / "outside"
        self.outside.mkdir()
        (self.outside / "mine").write_text("mine")
        self.other = run_dir(engine, run_to_end(engine, "answer other"))
        for name in (paths.STOP, paths.INBOX):
            (self.other / name).write_text("other")
        self._before = self._all()

    def _all(self) -> dict[str, tuple[bytes, int]]:
        files = [path for place in (self.outside, self.other) for path in place.rglob("[!.]*") if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mode) for path in files}

    def spoil(self, run: Path, name: str, way: str) -> str:
        """Return the sh command that spoils a file of a run."""
        other = self.other if name == "." else self.other / name
        return WAYS[way].format(it=run / name if name != "." else run, outside=self.outside, other=other)

    def check(self) -> None:
        assert self._before == self._all()


def spoiling(engine: Engine, there: Surroundings, name: str, way: str) -> RunSnapshot:
    """Start a run whose agent spoils one of the run's files and continues; return the run afterwards.

    The agent waits until its wrapper has recorded it, because that would repair the file.
    """
    done, gate = (there.outside.parent / name for name in ("spoiled", "gate"))
    spoil = there.spoil(Path(engine.project.runs, "$SUBDECK_RUN_ID"), name, way)
    run = start(engine, "say One.", f"wait-for {gate}", f"bash {spoil}", f"touch {done}", "hang")

    def is_known() -> bool:
        facts = artifacts.read_runner(str(run_dir(engine, run)))
        return facts is not None and bool(facts.child_pid)

    wait_until(is_known, "the pid of the child")
    gate.touch()
    wait_until(done.exists, "the child to spoil it")
    return run


@pytest.mark.parametrize(("name", "way"), CASES)
def test_stopping(engine: Engine, tmp_path: Path, name: str, way: str) -> None:
    """If an agent spoils any file of its run, the run is alive, can be stopped, and has its real outcome."""
    there = Surroundings(engine, tmp_path)
    run = spoiling(engine, there, name, way)
    fresh = Engine.open(engine.project.root)
    (seen,) = fresh.snapshots([run.run_id])
    assert (False, False, False) == (seen.has_ended, seen.foreign, seen.elsewhere)
    force = CASES.index((name, way)) % 2 == 0
    assert (run.run_id,) == fresh.stop([run.run_id], force=force)
    ended = wait_for_end(fresh, run.run_id)
    assert (RunStatus.ABORTED, RunReason.KILLED if force else RunReason.STOPPED) == (ended.status, ended.reason)
    tampered = " ".join(result_of(fresh, ended).tampered)
    assert not ended.foreign
    if name != paths.INBOX:  # which the agent of a non-interactive run does not have
        whole = paths.META if way == "copy of another run" else "directory"
        word = whole if name == "." else name
        assert word in tampered and tampered in " ".join(ended.warnings)
    assert fresh.meta(run.run_id).task == run.meta.task
    wait_until(lambda: not second_copy.exists(str(run_dir(engine, run))), "the second copy to be removed")
    there.check()


@pytest.mark.parametrize("place", [".pi", ".pi/subagents"])
def test_our_directories_are_moved_and_linked(engine: Engine, tmp_path: Path, place: str) -> None:
    """The second copy is found by the project, even if an agent moves the directories of its runs.

    A directory that is missing for a moment is not a deleted one: the run continues.
    """
    done, root = tmp_path / "spoiled", engine.project.root
    moved = f"cd {root} && mv {place} {place}-2 && sleep 0.2 && ln -s {os.path.basename(place)}-2 {place}; touch {done}"
    run = start(engine, "say One.", f"bash {moved}", "hang")
    wait_until(done.exists, "the child to move it")
    fresh = run_in_process(root, f"print(second_copy.exists({str(run_dir(engine, run))!r}))")
    assert "True" == fresh
    assert (run.run_id,) == Engine.open(root).stop([run.run_id], force=True)
    assert not wait_for_end(Engine.open(root), run.run_id).foreign


@pytest.mark.parametrize("name", FILES)
def test_its_status_while_it_runs(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A run with spoiled records is shown as running, with a warning that names the file."""
    run_wrappers_with(monkeypatch, LOOK_OFTEN)
    there = Surroundings(engine, tmp_path)
    run = spoiling(engine, there, name, "other content")

    def is_shown() -> bool:
        (seen,) = Engine.open(engine.project.root).snapshots([run.run_id])
        word = "directory" if name == "." else name
        return seen.status is RunStatus.RUNNING and any(word in warning for warning in seen.warnings)

    wait_until(is_shown, "the warning")
    engine.stop([run.run_id], force=True)
    wait_for_end(engine, run.run_id)


def test_a_forged_result(engine: Engine) -> None:
    """A forged "completed" does not end a run: it continues, and is completed when it really is."""
    gate = Path(engine.project.root, "gate")
    record = FORGED % "$SUBDECK_RUN_ID"
    path = f"{engine.project.runs}/$SUBDECK_RUN_ID/result.json"
    quoted = record.replace('"', '\\"')
    run = start(engine, f'bash echo "{quoted}" > {path}', f"wait-for {gate}", "answer The truth.")
    started(engine, run)
    wait_until(lambda: list(run_dir(engine, run).glob("result.json*")), "the forged result")
    (seen,) = Engine.open(engine.project.root).snapshots([run.run_id])
    assert not seen.has_ended
    gate.touch()
    ended = wait_for_end(engine, run.run_id)
    result = result_of(engine, ended)
    assert ("done", "The truth.") == (result.reason, result.final_text)
    assert any("result.json.rejected-1" in sentence for sentence in result.tampered)
    assert "ALL TESTS PASS" in (run_dir(engine, run) / "result.json.rejected-1").read_text()


@pytest.mark.parametrize("name", FILES)
def test_a_wrapper_that_dies(engine: Engine, tmp_path: Path, name: str) -> None:
    """If an agent spoiled a record and its wrapper is killed, the run is lost, and the agent is ended."""
    there = Surroundings(engine, tmp_path)
    run = spoiling(engine, there, name, "other content")
    facts = artifacts.read_runner(str(run_dir(engine, run)))
    assert facts and facts.child_pid
    os.kill(facts.pid, signal.SIGKILL)
    wait_until(lambda: not lives(facts.pid), "the wrapper to die")
    ended = wait_for_end(Engine.open(engine.project.root), run.run_id)
    assert RunReason.LOST is ended.reason and not ended.foreign
    wait_until(lambda: not lives(facts.child_pid or 0), "the child to be ended")
    if name not in (paths.EVENTS, paths.INBOX):  # no other record has the events
        assert result_of(engine, ended).tampered
    there.check()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("way", ["other content", "deleted", "pipe", "link to outside"])
def test_replying(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str) -> None:
    """An agent's question can be answered, and it continues, even if its run's records were spoiled."""
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    run_wrappers_with(monkeypatch, LOOK_OFTEN)
    there = Surroundings(open_engine(project_dir), tmp_path)
    write_tree(project_dir, SHOP)
    write_settings(agent="offline", agents={})
    engine = Engine.open(str(project_dir))
    (run,) = engine.launch([RunRequest(task="Where is the token checked? Ask me which file.")], background=True)
    wait_until(lambda: any(isinstance(event, Request) for event in events_of(engine, run)), "its request")
    assert 0 == os.system(there.spoil(run_dir(engine, run), name, way))
    fresh = Engine.open(str(project_dir))
    wait_until(lambda: [run.run_id] == [one.run_id for one in fresh.requests()], "the request")
    fresh.reply(run.run_id, "", Verdict.REPLY, "src/auth.py")
    ended = wait_for_end(fresh, run.run_id)
    assert RunStatus.COMPLETED is ended.status
    there.check()


def test_without_a_state_directory(project_dir: Path) -> None:
    """If no second copy can be made the run starts with a warning, and works as usual."""
    engine = open_engine(project_dir)
    run_to_end(engine, "answer ok")  # makes the key
    place = Path(second_copy.directory_of(engine.project.run_dir("x"))).parent.parent
    shutil.rmtree(place, ignore_errors=True)
    place.write_text("in the way")
    run = run_to_end(engine, "answer ok")
    assert RunStatus.COMPLETED is run.status
    warnings = [event for event in events_of(engine, run) if "second copy" in getattr(event, "text", "")]
    assert warnings


def test_a_run_that_waits(project_dir: Path) -> None:
    """A queued run starts what was launched, even if its record was changed while it waited."""
    engine = open_engine(project_dir, max_running=1)
    first = start(engine, "hang")
    started(engine, first)
    run = start(engine, "answer The task.")
    wait_until(lambda: second_copy.exists(str(run_dir(engine, run))), "its wrapper")
    meta = run_dir(engine, run) / paths.META
    meta.write_text(meta.read_text().replace("puppet.py", "other.py"))
    engine.stop([first.run_id])
    ended = wait_for_end(engine, run.run_id)
    assert ("done", "The task.") == (ended.reason, result_of(engine, ended).final_text)


def test_a_copied_run_needs_no_copy(engine: Engine, tmp_path: Path) -> None:
    """A run directory copied to another project is read without the second copy."""
    run = run_to_end(engine, "answer ok")
    there = tmp_path / "there"
    (there / ".git").mkdir(parents=True)
    (there / ".git/HEAD").write_text("ref: refs/heads/main")
    copy_run(engine, run, there / ".pi/subagents/runs" / run.run_id)
    (seen,) = Engine.open(str(there)).snapshots()
    assert ("done", False) == (seen.reason, seen.foreign)
    assert run.run_id == seen.run_id


def test_deleting_removes_the_copy(engine: Engine) -> None:
    """Deleting a run removes its files in the state directory."""
    run = run_to_end(engine, "answer ok")
    directory = engine.project.run_dir(run.run_id)
    os.close(second_copy.make(directory, Path(directory, paths.META).read_bytes()))
    engine.delete([run.run_id])
    assert not os.path.lexists(second_copy.directory_of(directory))
