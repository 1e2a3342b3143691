"""Waiting for slots and agent sessions, by file locks."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.wrapper._queue import Queue, SessionReservation, Signals, SlotReservation, StopRequested, take_all

from tests.factories import make_meta, make_run
from tests.waiting import wait_until

pytestmark = pytest.mark.processes


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def queue(told: list[str]) -> Queue:
    return Queue(told.append)


@pytest.fixture
def held() -> Iterator[list[int]]:
    """Descriptors that are closed after the test."""
    descriptors: list[int] = []
    yield descriptors
    for descriptor in descriptors:
        os.close(descriptor)


def test_free_slots_are_taken_silently(tmp_path: Path, queue: Queue, told: list[str], held: list[int]) -> None:
    """While slots are free, no queueing is reported."""
    slots = SlotReservation(str(tmp_path / "slots"), 3, "one")
    held += [slots.take(queue) for _ in range(3)]
    assert ([], 3) == (told, len(set(held)))


def test_the_next_one_waits(tmp_path: Path, queue: Queue, told: list[str], held: list[int]) -> None:
    """A run without a free slot reports once that it waits, and gets the first released one."""
    slots = SlotReservation(str(tmp_path), 2, "one")
    held += [slots.take(queue), slots.take(queue)]
    got: list[int] = []
    waiter = threading.Thread(target=lambda: got.append(slots.take(queue)))
    waiter.start()
    wait_until(lambda: told, "the waiter to say so")
    assert [] == got
    os.close(held.pop())
    waiter.join()
    held += got
    assert (["slot"], 1) == (told, len(got))


def test_a_child_session_has_one_user(tmp_path: Path, queue: Queue, told: list[str], held: list[int]) -> None:
    """Two runs of one agent session run one after the other."""
    path = str(tmp_path / "deep" / "session.lock")
    held.append(SessionReservation(path, "run").take(queue))
    got: list[int] = []
    waiter = threading.Thread(target=lambda: got.append(SessionReservation(path, "run").take(queue)))
    waiter.start()
    wait_until(lambda: told, "the waiter to say so")
    os.close(held.pop())
    waiter.join()
    held += got
    assert ["session"] == told


def test_a_signal_that_came_first(tmp_path: Path, queue: Queue) -> None:
    """A wrapper stopped before it waits does not start waiting."""
    signals = Signals(run_dir="")
    signals.handle(signal.SIGTERM, None)
    with pytest.raises(StopRequested):
        take_all([SlotReservation(str(tmp_path / "slots"), 1, "one")], queue, signals)
    assert not (tmp_path / "slots").exists()


def test_later_signals_do_not_raise(tmp_path: Path, queue: Queue, held: list[int]) -> None:
    """Once all slots are taken, a signal is only noted."""
    signals = Signals(run_dir="")
    held += take_all([SlotReservation(str(tmp_path), 1, "two")], queue, signals)
    signals.handle(signal.SIGTERM, None)
    assert [signal.SIGTERM] == signals.caught


def test_a_wrapper_waits_for_its_child_session(project_dir: Path) -> None:
    """A wrapper that needs a busy agent session reports that it waits, and continues when the session is free."""
    project = Project(str(project_dir))
    meta, lock = make_run(project, make_meta(task="answer ok", session_path="s.jsonl"))
    directory, session = project.run_dir(meta.run_id), str(project_dir / "session.lock")
    busy = os.open(session, os.O_RDWR | os.O_CREAT)
    fcntl.flock(busy, fcntl.LOCK_EX)
    arguments = [directory, os.path.join(project.active, meta.run_id), "--session", session]
    with subprocess.Popen([sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *arguments]) as wrapper:
        events = Path(directory, paths.EVENTS)
        wait_until(lambda: events.exists() and '"for":"session"' in events.read_text(), "the wrapper to wait")
        assert artifacts.read_result(directory) is None
        os.close(busy)
        assert 0 == wrapper.wait(30)
    os.close(lock)
    result = artifacts.read_result(directory)
    assert result is not None and "completed" == result.status


def test_a_wrapper_that_comes_too_late(project_dir: Path) -> None:
    """A wrapper whose run is already finished starts nothing and changes nothing."""
    from tests.factories import make_finished

    project = Project(str(project_dir))
    meta = make_finished(project, make_meta(task="touch started"))
    directory = project.run_dir(meta.run_id)
    before = {name: os.stat(os.path.join(directory, name)).st_mtime_ns for name in os.listdir(directory)}
    arguments = [directory, os.path.join(project.active, meta.run_id)]
    subprocess.run([sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *arguments], check=True, timeout=30)
    assert before == {name: os.stat(os.path.join(directory, name)).st_mtime_ns for name in os.listdir(directory)}
    assert not os.path.exists("started")


def test_who_it_is_is_written_in_the_end(project_dir: Path) -> None:
    """A runner.json that could not be written is retried while its wrapper waits, and the result reports the error."""
    project = Project(str(project_dir))
    meta, lock = make_run(project, make_meta(task="answer ok"))
    directory, session = Path(project.run_dir(meta.run_id)), str(project_dir / "session.lock")
    busy = os.open(session, os.O_RDWR | os.O_CREAT)
    fcntl.flock(busy, fcntl.LOCK_EX)
    (directory / paths.RUNNER).mkdir()
    arguments = [str(directory), os.path.join(project.active, meta.run_id), "--session", session]
    with subprocess.Popen([sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *arguments]) as wrapper:
        wait_until((directory / paths.EVENTS).exists, "the wrapper to wait")
        (directory / paths.RUNNER).rmdir()
        facts = wait_until(lambda: artifacts.read_runner(str(directory)), "the file to be written")
        assert wrapper.pid == facts.pid
        os.close(busy)
        assert 0 == wrapper.wait(30)
    os.close(lock)
    result = artifacts.read_result(str(directory))
    assert result is not None and "completed" == result.status
    assert [error.partition(":")[0] for error in result.artifact_errors] == [paths.RUNNER]


def test_half_an_identity_is_not_written(project_dir: Path) -> None:
    """Without a readable boot id no runner.json is written, and the result reports the error."""
    project = Project(str(project_dir))
    meta, lock = make_run(project, make_meta(task="answer ok"))
    directory = project.run_dir(meta.run_id)
    code = "import sys; from subdeck.core.system import processes; processes.boot_id = lambda: ''; "
    code += "from subdeck.core.wrapper.__main__ import main; sys.exit(main(sys.argv[1:]))"
    arguments = [directory, os.path.join(project.active, meta.run_id)]
    subprocess.run([sys.executable, "-P", "-E", "-c", code, *arguments], check=True, timeout=30)
    os.close(lock)
    result = artifacts.read_result(directory)
    assert result is not None and "completed" == result.status
    assert [error.partition(":")[0] for error in result.artifact_errors] == [paths.RUNNER]
    assert not os.path.exists(os.path.join(directory, paths.RUNNER))


def test_two_wrappers_on_a_full_disk(project_dir: Path) -> None:
    """The second of two wrappers of one run exits at once, even if the first could not write its mark."""
    project = Project(str(project_dir))
    meta, lock = make_run(project, make_meta(task="answer ok"))
    directory, session = project.run_dir(meta.run_id), str(project_dir / "session.lock")
    busy = os.open(session, os.O_RDWR | os.O_CREAT)
    fcntl.flock(busy, fcntl.LOCK_EX)
    arguments = [directory, os.path.join(project.active, meta.run_id), "--session", session]
    command = [sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *arguments]
    with subprocess.Popen(command) as wrapper:
        wait_until(lambda: os.path.exists(os.path.join(directory, paths.EVENTS)), "the wrapper to wait")
        os.unlink(os.path.join(directory, paths.TAKEN))
        assert 0 == subprocess.run(command, timeout=30).returncode
        assert wrapper.poll() is None
        os.close(busy)
        assert 0 == wrapper.wait(30)
    os.close(lock)


def test_a_session_is_not_taken_from_a_run_that_may_be_alive(project_dir: Path) -> None:
    """A wrapper starts with an agent session only after the session's last run is finished, by any process, and can be
    stopped until then.
    """
    project = Project(str(project_dir))
    before, observer = make_run(project)
    session = project_dir / "session.lock"
    session.write_text(project.run_dir(before.run_id))
    (project_dir / "go").touch()
    wrappers: list[subprocess.Popen[bytes]] = []
    runs = [make_run(project, make_meta(task="answer ok", session_path="s.jsonl")) for _ in range(2)]
    for meta, _ in runs:
        arguments = [project.run_dir(meta.run_id), os.path.join(project.active, meta.run_id), "--session", str(session)]
        wrappers.append(subprocess.Popen([sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *arguments]))
        events = Path(arguments[0], paths.EVENTS)
        wait_until(lambda events=events: events.exists() and '"for":"session"' in events.read_text(), "it to wait")
    wrappers[0].terminate()
    assert 0 == wrappers[0].wait(30)
    assert (None, None) == (artifacts.read_result(project.run_dir(before.run_id)), wrappers[1].poll())
    os.close(observer)
    assert 0 == wrappers[1].wait(30)
    reasons = [
        result and result.reason.value
        for meta in (before, *(meta for meta, _ in runs))
        if (result := artifacts.read_result(project.run_dir(meta.run_id))) or True
    ]
    assert ["lost", "signal", "done"] == reasons
    for _, lock in runs:
        os.close(lock)


def test_a_wrapper_that_fails_says_its_error(project_dir: Path) -> None:
    """A wrapper that fails finishes its run with its own error as the message, then exits."""
    project = Project(str(project_dir))
    meta, lock = make_run(project)
    os.close(lock)
    (project_dir / "slots").touch()
    directory = project.run_dir(meta.run_id)
    arguments = [directory, os.path.join(project.active, meta.run_id), "--slots", "1", str(project_dir / "slots")]
    ended = subprocess.run(
        [sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *arguments], capture_output=True, timeout=30
    )
    result = artifacts.read_result(directory)
    assert result is not None
    assert (1, "start_failed", "wrapper") == (ended.returncode, result.reason, result.written_by)
    assert (result.error_message or "").startswith("its wrapper failed with FileExistsError: ")
    assert b"Traceback" in ended.stderr
    assert [] == [name for name in os.listdir(directory) if name.startswith(".")]


def test_a_wrapper_that_fails_where_the_disk_takes_no_more_files(project_dir: Path) -> None:
    """Without free file descriptors a failing wrapper still reports its error, in the open `stderr.log`."""
    project = Project(str(project_dir))
    meta, lock = make_run(project)
    os.close(lock)
    (project_dir / "slots").touch()
    directory = Path(project.run_dir(meta.run_id))
    (directory / paths.FAULT).mkdir()
    arguments = [directory, Path(project.active, meta.run_id), "--slots", "1", project_dir / "slots"]
    with (directory / paths.STDERR).open("wb") as stderr:
        stderr.write(b"a word of its child")
        stderr.flush()
        command = [sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *map(str, arguments)]
        subprocess.run(command, stderr=stderr, timeout=30)
    result = artifacts.read_result(str(directory))
    assert result is not None
    assert (result.error_message or "").startswith("its wrapper failed with FileExistsError: ")
