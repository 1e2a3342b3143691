"""Sticky sessions: one conversation per preset and directory, one run at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import signal
import stat
import threading
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.errors import UsageError
from subdeck.core.launch.child_session import begin_sticky, sticky_session
from subdeck.core.run import artifacts
from subdeck.core.run.describe import activity
from subdeck.core.run.events import RunQueued, RunStarted
from subdeck.core.run.model import RunStatus
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import end_of, events_of, open_engine, result_of, run_dir, started, wait_for_end, wait_until_gone
from tests.waiting import wait_until

from ..conversing import CONVERSING, ask, hand_over, parts, prompts_in, run, script, write_preset

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

FIRST = parts(script("say One.", "finish"))
SECOND = parts(script("say Two.", "finish"))
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    write_preset(project_dir, "sticky: true")
    return open_engine(project_dir, CONVERSING)


@pytest.fixture
def shared(project_dir: Path, home: Path) -> Path:
    """The directory of the project's shared sessions."""
    digits = hashlib.sha256(os.fsencode(project_dir)).hexdigest()[:16]
    return home / ".pi" / "subagent-sessions" / digits


def at_work(engine: Engine, run: RunSnapshot) -> RunStarted:
    """Wait until the first run of a session has read its task."""
    begun = started(engine, run)
    wait_until(lambda: prompts_in(run.meta.session_path or ""), "the child to be at work")
    return begun


def status_of(engine: Engine, run: RunSnapshot) -> RunSnapshot:
    (now,) = engine.snapshots([run.run_id])
    return now


def test_where_a_shared_session_is(engine: Engine, shared: Path) -> None:
    """A shared session's file, named by directory, preset and id below the agent's directory, outlives its run."""
    first = run(engine, FIRST)
    engine.delete([first.run_id])
    engine.purge([first.run_id])

    assert {f"scout_{first.meta.child_session_id}.jsonl", f"scout_{first.meta.child_session_id}.jsonl.lock"} == {
        path.name for path in shared.iterdir()
    }
    assert [FIRST] == prompts_in(first.meta.session_path or "")


def test_shared_sessions_are_private(engine: Engine, shared: Path) -> None:
    """Files and directories of sessions are private to the user, even with an open umask."""
    before = os.umask(0)
    try:
        run(engine, FIRST)
    finally:
        os.umask(before)

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (shared.parent, shared, *shared.iterdir())]
    assert [0o700, 0o700, 0o600, 0o600] == modes


def test_the_newest_goes_on_without_an_id(engine: Engine) -> None:
    """A run without a session id continues the session last written to; a run with an id continues that one."""
    first = run(engine, FIRST)
    other = Path(first.meta.session_path or "").with_name("scout_11111111-other.jsonl")
    other.write_text('{"type":"session","id":"11111111-other"}\n')
    os.utime(other, ns=(0, 0))
    second = run(engine, SECOND)
    third = run(engine, FIRST, child_session="11111111-other")
    fourth = run(engine, SECOND)

    assert first.meta.child_session_id == second.meta.child_session_id == result_of(engine, second).child_session_id
    assert [FIRST, SECOND] == prompts_in(second.meta.session_path or "")
    assert ("11111111-other", "11111111-other") == (third.meta.child_session_id, fourth.meta.child_session_id)
    assert [FIRST, SECOND] == prompts_in(other)


def test_presets_and_directories_do_not_share(engine: Engine, project_dir: Path) -> None:
    """A sticky session belongs to one preset in one directory, even if one name is a prefix of another."""
    write_preset(project_dir, "sticky: true", name="scout_x")
    (project_dir / "inside").mkdir()
    (project_dir / "link").symlink_to(project_dir / "inside")
    longer = run(engine, FIRST, preset="scout_x")
    runs = [longer, run(engine, FIRST), run(engine, FIRST, cwd="inside")]
    linked = run(engine, FIRST, cwd="link")

    assert 3 == len({each.meta.child_session_id for each in runs})
    assert runs[2].meta.child_session_id == linked.meta.child_session_id
    with pytest.raises(UsageError, match="is not an agent session id"):
        engine.launch([ask(FIRST, child_session=f"x_{longer.meta.child_session_id}")], background=True)
    with pytest.raises(UsageError, match="no agent session"):
        engine.launch([ask(FIRST, child_session=longer.meta.child_session_id)], background=True)


def test_the_next_one_waits(engine: Engine) -> None:
    """A run on a busy session is queued, shows the reason, and continues when the run before has ended."""
    (busy,) = engine.launch([ask(parts(script("say One.", "hang")))], background=True)
    at_work(engine, busy)
    (waiting,) = engine.launch([ask(SECOND)], background=True)
    queued = status_of(engine, waiting)
    engine.stop([busy.run_id])
    ended = wait_for_end(engine, waiting.run_id)
    wait_for_end(engine, busy.run_id)

    assert (RunStatus.QUEUED, "Waiting for the agent session") == (queued.status, activity(queued))
    assert ["session"] == [event.waits_for for event in events_of(engine, ended) if isinstance(event, RunQueued)]
    assert ("done", busy.meta.child_session_id) == (ended.reason, ended.meta.child_session_id)
    assert [busy.meta.task, SECOND] == prompts_in(ended.meta.session_path or "")


def test_one_that_waits_can_be_stopped(engine: Engine) -> None:
    """A run that waits for a session ends at once when it is stopped, without an agent process."""
    (busy,) = engine.launch([ask(parts("hang"))], background=True)
    at_work(engine, busy)
    (waiting,) = engine.launch([ask(SECOND)], background=True)
    engine.stop([waiting.run_id])
    ended = wait_for_end(engine, waiting.run_id)
    still = status_of(engine, busy)
    engine.stop([busy.run_id])
    wait_for_end(engine, busy.run_id)

    assert ("aborted", "stopped", None) == (ended.status, ended.reason, ended.started_at)
    assert RunStatus.RUNNING == still.status
    assert [parts("hang")] == prompts_in(busy.meta.session_path or "")


def test_what_a_killed_wrapper_left_is_ended_first(engine: Engine) -> None:
    """If a run's wrapper was killed, its agent is ended and the run finished as lost before the next one starts."""
    (killed,) = engine.launch([ask(parts(script("say One.", "deaf", "hang")))], background=True)
    pids = at_work(engine, killed)
    (waiting,) = engine.launch([ask(SECOND)], background=True)
    os.kill(pids.pid, signal.SIGKILL)
    begun = started(engine, waiting)
    lost = artifacts.read_result(str(run_dir(engine, killed)))
    wait_for_end(engine, waiting.run_id)

    assert lost is not None
    assert ("lost", "wrapper") == (lost.reason, lost.written_by)
    assert lost.ended_at <= begun.ts
    assert [killed.meta.task, SECOND] == prompts_in(killed.meta.session_path or "")
    wait_until_gone(pids.child_pid)


def test_a_holder_is_remembered_until_it_is_ended(engine: Engine, project_dir: Path) -> None:
    """If a run is stopped while it waits, the next run still ends the agent of a killed one."""
    (killed,) = engine.launch([ask(parts(script("deaf", "hang")))], background=True)
    pids = at_work(engine, killed)
    # The project's only slot is taken by another preset: the second run gets the session, then waits for the slot.
    write_preset(project_dir, name="other")
    open_engine(project_dir, CONVERSING, max_running=1)
    (other,) = engine.launch([ask(parts("hang"), preset="other")], background=True)
    started(engine, other)
    os.kill(pids.pid, signal.SIGKILL)
    wait_until_gone(pids.pid)
    (stopped,) = engine.launch([ask(SECOND)], background=True)
    engine.stop([stopped.run_id])
    wait_for_end(engine, stopped.run_id)
    assert not (run_dir(engine, killed) / "result.json").exists()
    engine.stop([other.run_id])
    wait_for_end(engine, other.run_id)
    last = run(engine, SECOND)

    assert ("stopped", "done") == (result_of(engine, stopped).reason, last.reason)
    assert ("lost", "wrapper") == (result_of(engine, killed).reason, result_of(engine, killed).written_by)
    wait_until_gone(pids.child_pid)


def test_two_that_are_launched_together(engine: Engine) -> None:
    """Runs of one group share a new session, one after the other."""
    runs = engine.launch([ask(FIRST), ask(SECOND)], background=True)
    ended = [wait_for_end(engine, each.run_id) for each in runs]

    assert ["done", "done"] == [each.reason for each in ended]
    assert 1 == len({each.meta.session_path for each in ended})
    assert 1 == len({result_of(engine, each).child_session_id for each in ended})
    assert sorted([FIRST, SECOND]) == sorted(prompts_in(ended[0].meta.session_path or ""))


@pytest.mark.parametrize(
    "name", ["#(touch x)", "a;b`c`", "$(id)", ".hidden", "--help", "日本語", "a b", "é" * 64, "x" * 64]
)
def test_a_preset_of_any_name_has_a_safe_file(engine: Engine, project_dir: Path, shared: Path, name: str) -> None:
    """The file's name has only letters, digits, `.`, `_` and `-`, and the next run finds it again."""
    write_preset(project_dir, "sticky: true", name=name, file="named")
    first, second = run(engine, FIRST, preset=name), run(engine, SECOND, preset=name)

    (path,) = shared.glob("*.jsonl")
    assert re.fullmatch(rf"[A-Za-z0-9._-]{{1,67}}_{UUID}\.jsonl", path.name)
    assert [str(path)] * 2 == [first.meta.session_path, second.meta.session_path]
    assert [FIRST, SECOND] == prompts_in(path)
    assert not (project_dir / "x").exists()


def test_names_that_look_alike_do_not_share(home: Path, tmp_path: Path) -> None:
    """Different names that lose the same characters in a file name stay apart, path separators included."""
    names = ["a b", "a/b", "a\\b", "a-b", "../a b", "y" * 61, "y" * 62]
    files = [sticky_session(session_id=None, preset=name, cwd=str(tmp_path)).shared or "" for name in names]

    assert len(names) == len({os.path.basename(path).rpartition("_")[0] for path in files})
    assert 1 == len({os.path.dirname(path) for path in files})


def test_sticky_finalizes_in_one_session(engine: Engine, project_dir: Path) -> None:
    """A sticky run's later attempts use the shared session, and keep its lock between them."""
    write_preset(project_dir, "sticky: true", "structured_result: true")
    task = parts(script("say Hm.", "finish"), hand_over(status="SUCCESS", result="Found."))
    first, second = engine.launch([ask(task), ask(task)], background=True)
    ended = [wait_for_end(engine, each.run_id) for each in (first, second)]
    prompts = prompts_in(first.meta.session_path or "")

    assert [("finalized", 2)] * 2 == [(each.reason, end_of(each).attempt) for each in ended]
    assert [True, False, True, False] == [said == task for said in prompts]


def test_two_launches_that_choose_at_once(engine: Engine, project_dir: Path, shared: Path) -> None:
    """If several launches find no conversation at once, one begins it and the others continue it."""
    before = [sticky_session(session_id=None, preset="scout", cwd=str(project_dir)) for _ in range(3)]
    assert (3, True) == (len({session.id for session in before}), all(session.is_new for session in before))
    turn = wait_until(lambda: begun_turn(shared), "a turn")
    chosen: list[str] = []
    choosers = [
        threading.Thread(target=lambda s=s: chosen.append(begin_sticky(s, preset="scout", cwd=str(project_dir)).id))
        for s in before
    ]
    for chooser in choosers:
        chooser.start()
    assert [] == list(shared.glob("*.jsonl")), "somebody began it out of turn"
    os.close(turn)
    for chooser in choosers:
        chooser.join()
    (path,) = shared.glob("*.jsonl")
    assert {path.stem.rpartition("_")[2]} == set(chosen)
    assert chosen[0] == run(engine, FIRST).meta.child_session_id


def begun_turn(shared: Path) -> int:
    """Take the lock for choosing among the conversations of a directory."""
    shared.mkdir(parents=True, exist_ok=True)
    turn = os.open(shared, os.O_RDONLY)
    fcntl.flock(turn, fcntl.LOCK_EX)
    return turn


def test_an_empty_session_is_mended(engine: Engine, shared: Path) -> None:
    """A conversation whose file a killed launcher or a full disk left empty begins again under its id."""
    first = run(engine, FIRST)
    wait_until_gone(started(engine, first).pid)  # it holds the conversation until its exit
    path = Path(first.meta.session_path or "")
    path.write_bytes(b"")
    second = run(engine, SECOND)

    assert first.meta.child_session_id == second.meta.child_session_id
    assert [SECOND] == prompts_in(path)
    assert f'"id":"{first.meta.child_session_id}"' in path.read_text().splitlines()[0]


def test_an_empty_session_in_use_is_left(project_dir: Path, shared: Path) -> None:
    """An empty file that another process is about to write is left to that process."""
    os.close(begun_turn(shared))
    path = shared / "scout_11111111-mine.jsonl"
    path.touch()
    session = sticky_session(session_id=None, preset="scout", cwd=str(project_dir))
    user = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(user, fcntl.LOCK_EX)
    assert "11111111-mine" == begin_sticky(session, preset="scout", cwd=str(project_dir)).id
    assert 0 == path.stat().st_size
    os.close(user)
