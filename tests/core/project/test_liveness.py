"""Who is responsible for a run is decided by a kernel lock; a reader that finds no holder writes the result, once."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.project import liveness
from subdeck.core.project.liveness import Proof, hold, reconcile
from subdeck.core.project.registry import Registry
from subdeck.core.run import artifacts, describe
from subdeck.core.run.events import AssistantText, EventTail, RunEnded, RunStarted
from subdeck.core.run.model import StopRequest
from subdeck.core.system import files, processes

from tests.factories import lives, make_finished, make_meta, make_result, make_run, wait_until_gone
from tests.waiting import wait_until

from .lost_runs import abandoned, facts, no_sleepers, sleeper

pytestmark = pytest.mark.processes

__all__ = ["no_sleepers"]


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


@pytest.mark.parametrize("holders", [1, 2])
def test_a_held_run_is_alive(project: Project, holders: int) -> None:
    """A run whose launcher, wrapper or both share its lock is alive, and nothing is written."""
    meta, lock = make_run(project)
    path = os.path.join(project.run_dir(meta.run_id), paths.LOCK)
    others = [os.open(path, os.O_RDWR) for _ in range(holders - 1)]
    for other in others:
        fcntl.flock(other, fcntl.LOCK_SH)
    assert Proof.ALIVE is reconcile(project, meta.run_id, by="test")
    assert artifacts.read_result(project.run_dir(meta.run_id)) is None
    for descriptor in (lock, *others):
        os.close(descriptor)


def test_looking_leaves_no_lock(project: Project) -> None:
    """Checking a living run leaves no lock: it can be locked once its holders have gone."""
    meta, lock = make_run(project)
    reconcile(project, meta.run_id, by="test")
    os.close(lock)
    taken = hold(project.run_dir(meta.run_id))
    assert taken is not None
    os.close(taken)


def test_an_abandoned_run_is_lost(project: Project) -> None:
    """A run without a holder is finished as lost by its reader, with the data of its events."""
    run_id, directory = abandoned(
        project,
        RunStarted(seq=1, ts="2026-01-01T00:00:00.000Z", pid=1, child_pid=1, attempt=1, max_attempts=1),
        AssistantText(seq=2, text="So far so good."),
    )
    assert Proof.FINISHED is reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None
    assert ("failed", "lost", "test") == (result.status, result.reason, result.written_by)
    assert ("So far so good.", "2026-01-01T00:00:00.000Z") == (result.final_text, result.started_at)
    assert not Path(project.active, run_id).exists()


@pytest.mark.parametrize(
    ("is_starting", "message"),
    [
        (False, "its launcher died or failed before the wrapper was started"),
        (True, "lost while its wrapper was starting"),
    ],
)
def test_a_launcher_that_died_first(project: Project, is_starting: bool, message: str) -> None:
    """A run that never had a wrapper reports only what is certain, even if its launcher had begun to start one."""
    meta, lock = make_run(project)
    os.close(lock)
    if is_starting:
        Path(project.run_dir(meta.run_id), paths.STARTING).touch()
    reconcile(project, meta.run_id, by="test")
    result = artifacts.read_result(project.run_dir(meta.run_id))
    assert result is not None
    assert ("lost", message) == (result.reason, result.error_message)
    assert not Path(project.run_dir(meta.run_id), paths.STARTING).exists()


def test_a_wrapper_that_could_not_start(project: Project) -> None:
    """If a wrapper died before it wrote its record, its last line on stderr becomes the message."""
    meta, lock = make_run(project)
    Path(project.run_dir(meta.run_id), paths.STDERR).write_text("Traceback …\nModuleNotFoundError: no msgspec\n")
    os.close(lock)
    reconcile(project, meta.run_id, by="test")
    result = artifacts.read_result(project.run_dir(meta.run_id))
    assert result is not None
    assert "start_failed" == result.reason
    assert "its wrapper could not start: ModuleNotFoundError: no msgspec" == result.error_message


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [("completed", "done", "done"), ("failed", "model_error", "model_error"), ("odd", "from the future", "lost")],
)
def test_an_end_that_was_written_counts(project: Project, status: str, reason: str, expected: str) -> None:
    """If a wrapper died between its last event and its result, the event decides the outcome."""
    run_id, directory = abandoned(
        project, AssistantText(seq=1, text="42"), RunEnded(seq=2, status=status, reason=reason)
    )
    reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None
    assert (expected, "42") == (result.reason, result.final_text)


@pytest.mark.parametrize(
    ("force", "reason", "expected"),
    [(False, "stopped", "stopped"), (False, "cancelled", "cancelled"), (True, "stopped", "killed")],
)
def test_a_wish_to_stop_counts(project: Project, force: bool, reason: str, expected: str) -> None:
    """A run that lost its wrapper after a stop request was aborted."""
    run_id, directory = abandoned(project)
    artifacts.write_stop(str(directory), StopRequest(by="someone", force=force, at="", reason=reason))
    reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None
    assert ("aborted", expected) == (result.status, result.reason)


def test_a_result_is_never_overwritten(project: Project) -> None:
    """The first result stays: a second writer finds and keeps it."""
    meta = make_finished(project, final_text="first")
    directory = project.run_dir(meta.run_id)
    assert Proof.FINISHED is reconcile(project, meta.run_id, by="test")
    assert not artifacts.write_result(directory, make_result(meta.run_id, final_text="second"))
    result = artifacts.read_result(directory)
    assert result is not None and "first" == result.final_text
    assert ["lock", "meta.json", "prompt.md", "result.json"] == sorted(os.listdir(directory))


def test_many_find_a_lost_run_at_once(project: Project) -> None:
    """Of many simultaneous readers one writes the result, and none takes another for a living wrapper."""
    run_id, directory = abandoned(project)
    together = threading.Barrier(8)
    proofs: list[Proof] = []

    def look(name: str) -> None:
        together.wait()
        proofs.append(reconcile(project, run_id, by=name))

    threads = [threading.Thread(target=look, args=(f"looker {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Proof.FINISHED in proofs and Proof.GONE not in proofs
    assert Proof.FINISHED is reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None and result.written_by.startswith("looker")


@pytest.mark.parametrize("is_at_work", [False, True], ids=["has finished", "is at work"])
def test_a_lock_that_is_taken_away_from_who_finishes(
    project: Project, monkeypatch: pytest.MonkeyPatch, is_at_work: bool
) -> None:
    """If another process gets the lock of a run that is being finished, the result is still written once."""
    run_id, directory = abandoned(project)
    lock = directory / paths.LOCK
    others: list[Proof | int | None] = []

    class Slow(liveness.LeftOvers):
        def end(self) -> tuple[str, ...]:
            if not others:
                others.append(None)
                lock.unlink()
                lock.touch() if is_at_work else None
                others[0] = hold(str(directory)) if is_at_work else reconcile(project, run_id, by="other")
            return super().end()

    monkeypatch.setattr(liveness, "LeftOvers", Slow)
    proof = reconcile(project, run_id, by="looker")
    ends = [event for event in EventTail(str(directory / paths.EVENTS)).read() if isinstance(event, RunEnded)]
    if is_at_work:
        assert (Proof.ALIVE, []) == (proof, ends)
    else:
        assert ([Proof.FINISHED], Proof.FINISHED, 1) == (others, proof, len(ends))


def test_a_prober_is_waited_for(project: Project) -> None:
    """Another prober's brief exclusive lock does not prove that a run is alive."""
    run_id, directory = abandoned(project)
    other = os.open(directory / paths.LOCK, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    threading.Timer(0.004, os.close, (other,)).start()
    assert Proof.FINISHED is reconcile(project, run_id, by="test")


def test_a_follower_hardly_waits_for_a_prober(project: Project) -> None:
    """A follower takes a run for alive while a prober has its lock, and finishes it later."""
    run_id, directory = abandoned(project)
    other = os.open(directory / paths.LOCK, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    registry = Registry(project, by="test", looks_again=True)
    began = time.monotonic()
    registry.look([run_id], prove=True)
    waited = time.monotonic() - began
    (run,) = registry.snapshots()
    assert (False, True) == (run.has_ended, waited < liveness.FINISHING_S / 2)
    os.close(other)
    registry.look([run_id], prove=True)
    (run,) = registry.snapshots()
    assert run.has_ended


def test_a_prober_that_lets_go_between_two_tries(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prober that releases the lock between two tries does not count as a wrapper."""
    run_id, directory = abandoned(project)
    other = [os.open(directory / paths.LOCK, os.O_RDWR)]
    fcntl.flock(other[0], fcntl.LOCK_EX)
    try_lock = files.try_lock

    def try_then_release(descriptor: int, *, shared: bool = False) -> bool:
        taken = try_lock(descriptor, shared=shared)
        while other:
            os.close(other.pop())
        return taken

    monkeypatch.setattr(files, "try_lock", try_then_release)
    assert Proof.FINISHED is reconcile(project, run_id, by="test")


def test_probers_are_never_taken_for_a_wrapper(project: Project) -> None:
    """However many readers check an abandoned run at once, none sees it alive."""
    run_id, _ = abandoned(project)
    proofs: list[Proof] = []
    lookers = [
        threading.Thread(target=lambda: proofs.extend(reconcile(project, run_id, by=None) for _ in range(300)))
        for _ in range(4)
    ]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join()
    assert {Proof.UNKNOWN} == set(proofs)


@pytest.mark.parametrize("strange", ["host", "boot_id", "pid_namespace"])
def test_a_run_from_elsewhere_is_unknown(project: Project, strange: str) -> None:
    """A run of another machine, boot or pid namespace is not finished, and its pids are not signalled."""
    pid = sleeper()
    began = processes.start_time(pid)
    elsewhere = facts(**{strange: "another", "pid": pid, "pid_started": began})
    started = RunStarted(seq=1, pid=pid, child_pid=pid, child_pid_started=began, attempt=1, max_attempts=1)
    run_id, directory = abandoned(project, started, runner=elsewhere)
    assert Proof.UNKNOWN is reconcile(project, run_id, by="test")
    assert artifacts.read_result(str(directory)) is None
    assert lives(pid)


@pytest.mark.parametrize(
    ("others", "local", "expected"),
    [
        ({}, True, Proof.FINISHED),
        ({"pid_namespace": "pid:[1]"}, True, Proof.FINISHED),
        ({}, False, Proof.UNKNOWN),
        ({"host": "another"}, True, Proof.UNKNOWN),
        ({"machine_id": "another"}, True, Proof.UNKNOWN),
        ({"machine_id": ""}, True, Proof.UNKNOWN),
        ({"boot_id": ""}, True, Proof.UNKNOWN),
    ],
)
def test_a_run_of_an_earlier_boot(
    project: Project, monkeypatch: pytest.MonkeyPatch, others: dict[str, str], local: bool, expected: Proof
) -> None:
    """A run of an earlier boot is dead if no other machine can hold it; its pids now belong to other processes."""
    monkeypatch.setattr(processes, "machine_id", lambda: "our id")
    monkeypatch.setattr(files, "is_local", lambda path: local)
    pid = sleeper()
    began = processes.start_time(pid)
    before = {"machine_id": "our id", "boot_id": "earlier", "pid": pid, "pid_started": began, **others}
    started = RunStarted(seq=1, pid=pid, child_pid=pid, child_pid_started=began, attempt=1, max_attempts=1)
    run_id, directory = abandoned(project, started, runner=facts(**before))
    assert expected is reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert ("this machine was restarted during the run" if expected is Proof.FINISHED else None) == (
        result and result.error_message
    )
    assert lives(pid)


def test_local_file_systems_are_known() -> None:
    """The kernel's own file systems do not count as local disks."""
    assert not files.is_local("/proc")
    assert not files.is_local("/no such place")


PASSING = [errno.EMFILE, errno.EIO, errno.ENFILE]


@pytest.mark.parametrize("code", PASSING)
@pytest.mark.parametrize("name", [paths.META, paths.RUNNER, paths.EVENTS, paths.STOP, paths.LOCK])
def test_a_fault_that_passes_finishes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    """While a run's file cannot be read its state is unknown; afterwards the run is finished as usual."""
    run_id, directory = abandoned(project, AssistantText(seq=1, text="So far."))
    with faulty(monkeypatch, name, code):
        assert Proof.UNKNOWN is reconcile(project, run_id, by="test")
    assert artifacts.read_result(str(directory)) is None
    assert Proof.FINISHED is reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None
    assert ("So far.", "its wrapper died unexpectedly; its remaining processes were ended, where found") == (
        result.final_text,
        result.error_message,
    )


@contextmanager
def faulty(monkeypatch: pytest.MonkeyPatch, name: str, code: int) -> Iterator[None]:
    """Refuse to open any file of this name."""
    open_it = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if os.path.basename(path) == name:
            raise OSError(code, os.strerror(code), path)
        return open_it(path, flags, mode, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        yield


@pytest.mark.parametrize("code", PASSING)
@pytest.mark.parametrize("name", [paths.META, paths.RESULT])
def test_a_list_reads_again_what_it_could_not(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    """A finished run with temporarily unreadable records is unknown in the list, and correct once they are readable."""
    meta = make_finished(project, make_meta(task="what it was about"))
    registry = Registry(project, by="test", looks_again=True)
    with faulty(monkeypatch, name, code):
        registry.look([meta.run_id], prove=True)
        (run,) = registry.snapshots()
        assert (True, False, False) == (run.elsewhere, run.foreign, run.has_ended)
        assert os.strerror(code) in describe.doing(run)
    assert {meta.run_id} == registry.unwatched_ids
    registry.look([meta.run_id], prove=True)
    (run,) = registry.snapshots()
    assert ("completed", "what it was about", False) == (run.status, run.meta.task, run.elsewhere)


def test_the_environment_file_goes_with_a_lost_run(project: Project) -> None:
    """A lost run's environment file, which may hold secrets, is removed."""
    run_id, directory = abandoned(project)
    (directory / paths.ENVIRONMENT).write_text("KEY=secret\0")
    reconcile(project, run_id, by="test")
    assert not (directory / paths.ENVIRONMENT).exists()


def test_a_torn_record_is_no_obstacle(project: Project) -> None:
    """Damaged runner.json, stop.json and events do not keep a lost run from its result."""
    run_id, directory = abandoned(project)
    for name in (paths.RUNNER, paths.STOP, paths.EVENTS):
        (directory / name).write_bytes(b'{"kind": "pro\xff')
    assert Proof.FINISHED is reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None
    message = "runner.json is damaged: invalid JSON (empty or truncated), and no process holds the run"
    assert ("lost", message) == (result.reason, result.error_message)


def test_no_run_is_gone(project: Project) -> None:
    """A run without a directory is gone."""
    assert Proof.GONE is reconcile(project, "20260101-000000-abcdef", by="test")


def test_holding_excludes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run can have only one holder, and none while its wrapper has it."""
    monkeypatch.setattr(liveness, "FINISHING_S", 0.0)
    meta, lock = make_run(project)
    directory = project.run_dir(meta.run_id)
    assert hold(directory) is None
    os.close(lock)
    mine = hold(directory)
    assert mine is not None
    assert hold(directory) is None
    os.close(mine)


def test_result_files_are_whole(project: Project) -> None:
    """A reader never sees part of a result."""
    meta, lock = make_run(project)
    directory = project.run_dir(meta.run_id)
    os.close(lock)
    seen: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            if os.path.exists(os.path.join(directory, paths.RESULT)):
                seen.append(artifacts.read_result(directory))
                return

    reader = threading.Thread(target=read)
    reader.start()
    result = make_result(meta.run_id, final_text="x" * 3_000_000)
    assert artifacts.write_result(directory, result)
    wait_until(lambda: seen, "the reader to see it")
    done.set()
    reader.join()
    assert [msgspec.to_builtins(result)] == [msgspec.to_builtins(one) for one in seen]


def test_signals_hit_no_stranger() -> None:
    """A signal for a process that started at another time is not sent."""
    pid = sleeper()
    began = processes.start_time(pid)
    assert began is not None
    assert not processes.send(pid, signal.SIGKILL, began + 1)
    assert lives(pid)
    assert processes.send(pid, signal.SIGKILL, began)
    wait_until_gone(pid)


def test_a_watched_wrapper_that_dies_is_named_once(project: Project) -> None:
    """The kernel reports which local wrapper died, once; other wrappers are not watched."""
    living, dying = sleeper(), sleeper()
    started = {pid: processes.start_time(pid) for pid in (living, dying)}
    runners = {
        "living": facts(pid=living, pid_started=started[living]),
        "dying": facts(pid=dying, pid_started=started[dying]),
        "another process by now": facts(pid=living, pid_started=(started[living] or 0) + 1),
        "elsewhere": facts(pid=living, pid_started=started[living], host="elsewhere"),
        "without its start": facts(pid=living, pid_started=None),
        "absurd": facts(pid=2**80, pid_started=1),
    }
    wrappers = liveness.WrapperWatch()
    for name, runner in runners.items():
        wrappers.add(name, str(abandoned(project, runner=runner)[1]))
    wrappers.add("no such run", str(project.root))
    assert ["living", "dying"] == [name for name in (*runners, "no such run") if name in wrappers]
    os.kill(dying, signal.SIGKILL)
    assert {"dying"} == wait_until(wrappers.take_dead, "the death of a wrapper")
    assert (set(), True, False) == (wrappers.take_dead(), "living" in wrappers, "dying" in wrappers)


def _is_pidfd(descriptor: int) -> bool:
    try:
        return "pidfd" in os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return False


def test_a_forgotten_wrapper_whose_descriptor_a_child_inherited(project: Project) -> None:
    """The death of an unwatched wrapper is not reported, even if a child process has a copy of its pidfd."""
    forgotten, other = sleeper(), sleeper()
    wrappers = liveness.WrapperWatch()
    runner = facts(pid=forgotten, pid_started=processes.start_time(forgotten))
    wrappers.add("forgotten", str(abandoned(project, runner=runner)[1]))
    held = [int(name) for name in os.listdir("/proc/self/fd")]
    child = subprocess.Popen(["sleep", "60"], pass_fds=[number for number in held if _is_pidfd(number)])
    try:
        wrappers.forget("forgotten")
        os.kill(forgotten, signal.SIGKILL)
        wait_until_gone(forgotten)
        assert set() == wrappers.take_dead()
        runner = facts(pid=other, pid_started=processes.start_time(other))
        wrappers.add("watched", str(abandoned(project, runner=runner)[1]))
        assert set() == wrappers.take_dead()
        os.kill(other, signal.SIGKILL)
        assert {"watched"} == wait_until(wrappers.take_dead, "the death of the watched wrapper")
    finally:
        child.kill()
        child.wait()


def test_a_living_wrapper_is_not_proven_again_and_again(project: Project) -> None:
    """A registry that checks repeatedly knows which open runs have no living local wrapper."""
    run_id, directory = abandoned(project, runner=facts(pid=os.getpid(), pid_started=processes.start_time(os.getpid())))
    unknown, other = abandoned(project)
    locks_held = [os.open(path / paths.LOCK, os.O_RDWR) for path in (directory, other)]
    for lock in locks_held:
        files.lock(lock, shared=True)
    registry = Registry(project, by="test", looks_again=True)
    registry.look([run_id, unknown], prove=True)
    assert ({unknown}, {run_id, unknown}) == (registry.unwatched_ids, set(registry.open_ids))
    for lock in locks_held:
        os.close(lock)
    registry.look([run_id, unknown], prove=True)
    assert (set(), set()) == (registry.unwatched_ids, registry.take_dead_ids())


@pytest.mark.parametrize("name", [paths.STOP, paths.RUNNER, paths.FAULT, paths.STDERR, paths.EVENTS, paths.WRITING])
def test_a_directory_in_the_place_of_a_record(project: Project, name: str) -> None:
    """A run without a holder is finished even if a directory stands in place of one of its files."""
    run_id, directory = abandoned(project)
    (directory / name).unlink(missing_ok=True)
    (directory / name).mkdir()
    assert Proof.FINISHED is reconcile(project, run_id, by="test")


@pytest.mark.parametrize(
    ("others", "went"),
    [
        ({"pid_namespace": "pid:[1]"}, "its container no longer exists"),
        ({"pid_namespace": "pid:[1]", "host": "another"}, "its container no longer exists"),
        ({"boot_id": "earlier", "machine_id": ""}, "its machine no longer exists"),
        ({"boot_id": "earlier", "machine_id": "our id"}, "this machine was restarted during the run"),
    ],
    ids=["container", "container of another name", "unknown machine", "restart"],
)
def test_a_run_of_the_past_where_nobody_else_is(
    project: Project, monkeypatch: pytest.MonkeyPatch, others: dict[str, str], went: str
) -> None:
    """The sole user of a project finishes runs of a past container or boot, if other machines' locks are visible.

    A process that has their pid now is not ended.
    """
    monkeypatch.setattr(processes, "machine_id", lambda: "our id")
    pid = sleeper()
    began = processes.start_time(pid)
    run_id, directory = abandoned(project, runner=facts(**{"pid": pid, "pid_started": began, **others}))
    monkeypatch.setattr(files, "is_local", lambda path: False)
    assert Proof.UNKNOWN is reconcile(project, run_id, by="host", is_sole=True)
    monkeypatch.setattr(files, "is_local", lambda path: True)
    if went != "this machine was restarted during the run":
        assert Proof.UNKNOWN is reconcile(project, run_id, by="host")
    assert Proof.FINISHED is reconcile(project, run_id, by="host", is_sole=True)
    result = artifacts.read_result(str(directory))
    assert result is not None
    assert (went, "host") == (result.error_message, result.written_by)
    assert lives(pid)


def test_what_a_container_left_is_ended(project: Project) -> None:
    """Visible processes with the mark of a run in a past container are ended with it."""
    run_id, _ = abandoned(project, runner=facts(pid_namespace="pid:[1]"))
    pid = sleeper(**{processes.RUN_MARK: run_id})
    assert Proof.FINISHED is reconcile(project, run_id, by="host", is_sole=True)
    wait_until_gone(pid)
