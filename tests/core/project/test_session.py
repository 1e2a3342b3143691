"""A session's file has its launches, and each end is reported once."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.errors import LaunchError, UsageError
from subdeck.core.paths import Project
from subdeck.core.project.registry import Registry
from subdeck.core.project.session import BG_DONE, BG_RUN, BG_UPDATE, SessionFile
from subdeck.core.run import artifacts
from subdeck.core.run.model import RunMeta, RunReason
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import make_meta, make_snapshot, open_engine, run_to_end, start, wait_for_end
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


@pytest.fixture
def session(project: Project) -> SessionFile:
    return SessionFile(project, "one")


def entries(project: Project, session: str = "one") -> list[dict]:
    return [json.loads(line) for line in Path(project.session_file(session)).read_text().splitlines()]


def test_entries(project: Project, session: SessionFile) -> None:
    """A launch is one custom entry; an end is another and a visible message, all in pi's format."""
    run = make_snapshot(make_meta(task="look\x1b[31m around", preset="scout"), message="found")
    session.add_run(run.meta)
    assert session.claim(run)
    added, update, done = entries(project)
    assert [BG_RUN, BG_UPDATE, BG_DONE] == [entry["customType"] for entry in (added, update, done)]
    assert ["custom", "custom", "custom_message"] == [entry["type"] for entry in (added, update, done)]
    assert {"runId", "preset", "task", "cwd", "requestedModel", "resolvedModel", "createdAt"} == added["data"].keys()
    assert (run.run_id, "completed", "done", "found") == tuple(
        update["data"][key] for key in ("runId", "status", "reason", "message")
    )
    assert f"scout {run.meta.short_id} completed (done): look around" == done["content"]
    assert done["display"] is True
    assert 3 == len({entry["id"] for entry in (added, update, done)})


def test_the_file_is_private(project: Project, session: SessionFile) -> None:
    """Only the owner can read a session."""
    session.add_run(make_meta())
    assert 0o600 == os.stat(project.session_file("one")).st_mode & 0o777


def test_told_once(session: SessionFile) -> None:
    """A second claim of the same end is refused, and the end is no longer unreported."""
    run = make_snapshot()
    session.add_run(run.meta)
    assert (run.run_id,) == session.unreported()
    assert [True, False] == [session.claim(run), session.claim(run)]
    assert () == session.unreported()


def test_another_reader_sees_it(project: Project, session: SessionFile) -> None:
    """One program's claim is known to all others of the session, and not to other sessions."""
    run = make_snapshot()
    other, stranger = SessionFile(project, "one"), SessionFile(project, "two")
    session.add_run(run.meta)
    assert (run.run_id,) == other.unreported()
    assert other.claim(run)
    assert ((), ()) == (session.unreported(), stranger.unreported())
    assert not session.claim(run)


@pytest.mark.parametrize("torn", [b'{"type":"custom","customType":"pi-suba', b"\xff\xfe\x00", b"[1,2", b"{}"])
def test_a_torn_last_line(project: Project, session: SessionFile, torn: bytes) -> None:
    """After a line torn by a crash, the next entry starts on its own line."""
    first, second = make_snapshot(), make_snapshot()
    session.add_run(first.meta)
    with open(project.session_file("one"), "ab") as file:
        file.write(torn)
    session.add_run(second.meta)
    assert (first.run_id, second.run_id) == session.unreported()
    assert session.claim(second)
    fresh = SessionFile(project, "one")
    assert (first.run_id,) == fresh.unreported() == session.unreported()
    assert not fresh.claim(second)


def test_foreign_entries_say_nothing(project: Project, session: SessionFile) -> None:
    """Entries of other programs and other types are ignored."""
    session.add_run(make_meta())
    with open(project.session_file("one"), "ab") as file:
        file.write(b'{"type":"session","version":3}\n{"customType":"pi-subagents:bg-run","data":null}\n"x"\n\n')
    assert 1 == len(session.unreported())


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Let threads interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_one_thread_tells(project: Project, hasty_threads: None) -> None:
    """If many threads claim many ends through one file, one thread gets each."""
    session = SessionFile(project, "one")
    runs = [make_snapshot() for _ in range(25)]
    for run in runs:
        session.add_run(run.meta)
    together = threading.Barrier(8)
    won: list[str] = []

    def claim_all() -> None:
        together.wait()
        for run in runs:
            session.unreported()
            if session.claim(run):
                won.append(run.run_id)

    threads = [threading.Thread(target=claim_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(run.run_id for run in runs) == sorted(won)
    assert 3 * len(runs) == len(entries(project))


CLAIMER = """
import sys
from subdeck.core.engine import Engine
engine = Engine.open()
sys.stdin.readline()
for run in engine.snapshots():
    if engine.claim(run):
        print(run.run_id)
"""


def test_one_process_tells(project_dir: Path) -> None:
    """If several programs of one session see the same ends, one gets each."""
    engine = open_engine(project_dir)
    ids = {run_to_end(engine, "answer ok").run_id for _ in range(4)}
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER],
            cwd=project_dir,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    told = [claimer.communicate("go\n")[0].split() for claimer in claimers]
    assert sorted(ids) == sorted(run_id for one in told for run_id in one)
    assert () == engine.unseen()


def test_what_is_unseen(project_dir: Path) -> None:
    """Only ends of this session's background runs are unread, until they are claimed."""
    engine = open_engine(project_dir)
    mine, open_one = run_to_end(engine, "answer mine"), start(engine, "hang")
    foreground = run_to_end(engine, "answer loud", background=False)
    other = Engine.open(str(project_dir), session="other")
    theirs = run_to_end(other, "answer theirs")
    assert ([mine.run_id], [theirs.run_id]) == (
        [run.run_id for run in engine.unseen()],
        [run.run_id for run in other.unseen()],
    )
    assert [False, False, False] == [engine.claim(run) for run in (foreground, theirs, open_one)]
    assert [True, False] == [engine.claim(mine), engine.claim(mine)]
    assert () == engine.unseen()
    engine.stop([open_one.run_id])
    wait_for_end(engine, open_one.run_id)
    assert [open_one.run_id] == [run.run_id for run in engine.unseen()]


def test_a_deleted_run_is_not_unseen(project_dir: Path) -> None:
    """The end of a run deleted before it was reported is never reported."""
    engine = open_engine(project_dir)
    engine.delete([run_to_end(engine, "answer ok").run_id])
    assert () == engine.unseen()


def test_a_session_file_that_cannot_be_written(project_dir: Path) -> None:
    """If the session file cannot be written, a background run or group is refused with the reason."""
    engine = open_engine(project_dir)
    os.makedirs(engine.project.session_file("operator"))
    for tasks in (["answer ok"], ["answer one", "answer two"]):
        with pytest.raises(LaunchError, match=r"sessions/operator\.jsonl is a directory, not a file") as refused:
            engine.launch([RunRequest(task=task) for task in tasks], background=True)
        assert engine.project.session_file("operator") == refused.value.where
    assert () == engine.snapshots()
    assert "completed" == run_to_end(engine, "answer ok", background=False).status


def test_a_group_of_which_the_session_takes_only_a_part(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk refuses a group's second entry, the first run is also withdrawn."""
    engine = open_engine(project_dir)
    add = SessionFile.add_run

    def add_once(session: SessionFile, meta: RunMeta) -> None:
        if session.unreported():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "sessions")
        add(session, meta)

    monkeypatch.setattr(SessionFile, "add_run", add_once)
    with pytest.raises(LaunchError, match="No space left on device"):
        engine.launch([RunRequest(task="answer one"), RunRequest(task="answer two")], background=True)
    assert ((), ()) == (engine.snapshots(), engine.unseen())


FULL = """
import resource, sys
from subdeck.core.launch import start as launching
from subdeck.core.paths import Project
from subdeck.core.project.registry import Registry
from subdeck.core.project.session import SessionFile
from tests.factories import make_snapshot
session = SessionFile(Project(sys.argv[1]), "one")
run = make_snapshot()
session.add_run(run.meta)
before = open(session._path, "rb").read()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, -1))
assert [True, False] == [session.claim(run), session.claim(run)]
assert before == open(session._path, "rb").read()
"""


def test_a_claim_that_does_not_fit(project: Project) -> None:
    """If the disk takes only part of a claim, no torn line stays, and this program still reports the end once."""
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", FULL, project.root], check=True, cwd=root)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 65, "ä"])
def test_names_of_sessions(project: Project, name: str) -> None:
    """A session id is a valid file name, or is refused with the reason."""
    with pytest.raises(UsageError, match="not a session id"):
        SessionFile(project, name)


def test_a_failed_end_is_worded(project: Project, session: SessionFile) -> None:
    """The visible message of a failed run has its status and reason."""
    run: RunSnapshot = make_snapshot(status="failed", reason=RunReason.LOST)
    session.claim(run)
    assert "failed (lost)" in entries(project)[-1]["content"]


KILLED_LAUNCHER = """
import os, signal, sys
from pathlib import Path
from subdeck.core.run import artifacts
from tests.factories import open_engine, start
create = artifacts.create_run
def create_and_die(*words):
    create(*words)
    os.kill(os.getpid(), signal.SIGKILL)
artifacts.create_run = create_and_die
start(open_engine(Path(sys.argv[1])), "answer ok")
"""


def test_a_launch_is_known_before_its_run_exists(project_dir: Path) -> None:
    """A launcher writes its session entry before its run exists: the end is reported even if it is killed then."""
    engine, root = open_engine(project_dir), Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", KILLED_LAUNCHER, str(project_dir)], cwd=root)
    (run_id,) = artifacts.run_ids(engine.project.runs)
    (lost,) = Engine.open(str(project_dir)).unseen()
    assert (-signal.SIGKILL, run_id, "lost") == (done.returncode, lost.run_id, lost.reason)
    assert [True, False] == [engine.claim(lost), engine.claim(lost)]


def test_an_end_within_the_first_look(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends after the project was listed and before the first update is reported as unread."""
    engine = open_engine(project_dir)
    run = start(engine, f"wait-for {project_dir}/go", "answer ok")
    look = Registry.look

    def look_when_it_has_ended(registry: Registry, run_ids: Iterable[str], *, prove: bool = False) -> set[str]:
        (project_dir / "go").touch()
        wait_until((Path(engine.project.run_dir(run.run_id)) / "result.json").exists, "the end")
        return look(registry, run_ids, prove=prove)

    monkeypatch.setattr(Registry, "look", look_when_it_has_ended)
    other = Engine.open(str(project_dir))
    stop = threading.Event()
    updates = other.updates(stop)
    first = next(updates)
    monkeypatch.undo()
    told = [ended.run_id for ended in first.ended if other.claim(ended)]
    told += [ended.run_id for ended in other.unseen() if other.claim(ended)]
    told += [ended.run_id for ended in next(updates).ended if other.claim(ended)]
    stop.set()
    assert [run.run_id] == told
