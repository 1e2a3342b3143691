"""Processes are ended until the kernel reports no more; the remaining ones are named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from subdeck.core.system import processes, termination

from tests.factories import lives
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

DEAF = 'trap "" TERM INT HUP; echo $$; exec sleep 1000'
LINK = 'trap "" TERM; [ "$1" -gt 0 ] && { sleep 0.01; sh -c "$0" "$0" $(($1 - 1)) & }'
"""A shell that exits as soon as it has started the next one."""


@pytest.fixture
def subreaper() -> Iterator[None]:
    """Make this process inherit all orphans, like a wrapper."""
    assert processes.become_subreaper()
    yield
    termination.end_children(0.0)
    prctl(36, 0)


def prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def daemonised(script: str, *arguments: str) -> int:
    """Start an orphaned shell in its own session without an environment; return its pid."""
    command = f"import subprocess; print(subprocess.Popen({['/bin/sh', '-c', script, *arguments]!r}, env={{}}, "
    command += "start_new_session=True, stdin=-3, stdout=-3, stderr=-3).pid)"
    return int(subprocess.check_output([sys.executable, "-I", "-S", "-c", command]))


def deaf(*, as_user: int | None = None) -> subprocess.Popen[str]:
    """Start a process that ignores TERM, and wait until it does."""
    child = subprocess.Popen(["/bin/sh", "-c", DEAF], stdout=subprocess.PIPE, text=True, user=as_user)
    assert child.stdout
    with child.stdout:
        child.stdout.readline()
    return child


def test_a_look_that_misses_it_is_no_proof(subreaper: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon missing from the first list of processes is ended, because the kernel still reports a child."""
    pid = daemonised(DEAF)
    living, misses = processes.living, [{}] * 3
    monkeypatch.setattr(processes, "living", lambda: misses.pop() if misses else living())
    assert () == termination.end_children(0.05)
    assert (not misses, False) == (True, lives(pid))


@pytest.mark.parametrize("has_chain", [False, True])
def test_a_spared_child_stays(subreaper: None, has_chain: bool) -> None:
    """A spared child stays with everything below it, while all others are ended, also a chain that forks on and on."""
    script = "sleep 1000 & echo $!; wait"
    spared = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert spared.stdout
    below = int(spared.stdout.readline())
    began = processes.start_time(spared.pid)
    assert began
    other = daemonised(DEAF)
    if has_chain:
        daemonised(LINK, LINK, "100000")
    assert () == termination.end_children(0.05, spared={spared.pid: began})
    assert (True, True, False) == (lives(spared.pid), lives(below), lives(other))
    assert {spared.pid, below} == set(processes.descendants(os.getpid()))
    assert () == termination.end_children(0.0, spared={spared.pid: began + 1})
    assert (False, False) == (lives(spared.pid), lives(below))
    spared.stdout.close()
    spared.wait()


def test_a_chain_that_forks_on_and_on(subreaper: None) -> None:
    """Processes that each exit after starting the next one are ended."""
    daemonised(LINK, LINK, "100000")
    assert () == termination.end_children(0.05)
    assert [] == processes.descendants(os.getpid())


def test_a_list_of_processes_that_cannot_be_read(subreaper: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a readable /proc children are still ended."""
    child = deaf()

    def fail() -> dict[int, int]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(processes, "living", fail)
    assert () == termination.end_children(0.0)
    assert not lives(child.pid)
    child.wait()


def test_force_asks_nobody(subreaper: None) -> None:
    """Without patience KILL comes first."""
    child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
    termination.end_children(0.0)
    assert not lives(child.pid)
    child.wait()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start what another user may not end")
@pytest.mark.parametrize("how", ["children", "found"])
def test_what_cannot_be_ended_is_named(how: str) -> None:
    """A process that our signals cannot end, such as another user's, is named with its pid after enough attempts."""
    code = f"""
import os, subprocess, sys
from subdeck.core.system import processes, termination
termination.PERSISTENCE_S = 0.2
processes.become_subreaper()
child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
started = processes.start_time(child.pid)
os.setuid(65534)
if {how == "children"}:
    print(*termination.end_children(0.0))
else:
    print(*termination.end_found(lambda: {{child.pid: started}}, 0.0))
print(child.pid)
"""
    said, pid = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    os.kill(int(pid), 9)
    assert f"sleep (pid {pid})" == said


def test_several_looks_have_to_find_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes found only by search need several empty searches to count as gone, and are waited for."""
    child = deaf()
    started = processes.start_time(child.pid)
    assert started is not None
    looks = [{}, {child.pid: started}, {}]
    assert () == termination.end_found(lambda: looks.pop(0) if looks else {}, 0.05)
    assert not lives(child.pid)
    child.wait()


def test_a_stranger_with_the_same_pid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with another start time is not signalled."""
    child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
    started = processes.start_time(child.pid)
    assert started is not None
    found = [{child.pid: started - 1}]
    assert () == termination.end_found(lambda: found.pop() if found else {}, 0.0)
    assert lives(child.pid)
    child.kill()
    child.wait()


def test_threads_that_outlive_the_first_one(subreaper: None) -> None:
    """A process whose first thread has ended only looks like a zombie."""
    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(1000,)).start(); "
    code += "ctypes.CDLL(None).syscall(60, 0)"  # exit of one thread, on x86-64
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code])
    started = processes.start_time(child.pid)
    assert started is not None
    wait_until(lambda: state(child.pid) == "Z", "its first thread to end")
    assert processes.is_alive(child.pid, started)
    assert () == termination.end_children(0.0)
    assert not processes.is_alive(child.pid, started)
    child.wait()


def state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(") ")[2][0]


@pytest.mark.parametrize("error", [1, 24, 38], ids=["EPERM", "EMFILE", "ENOSYS"])
def test_no_pidfd_is_no_proof(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """Without a pidfd the right process is still signalled, and only that one."""

    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(error, os.strerror(error))

    child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
    started = processes.start_time(child.pid)
    assert started is not None
    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert not processes.send(child.pid, 9, started - 1)
    assert processes.send(child.pid, 9, started)
    assert -9 == child.wait()


def test_a_fork_after_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process forked between the search for descendants and the kill does not survive."""
    tree = subprocess.Popen(["/bin/sh", "-c", "(read _; sleep 1000; :); :"], stdin=subprocess.PIPE)
    assert tree.stdin
    descendants = processes.descendants
    forked: list[int] = []

    def look(root: int) -> list[int]:
        seen = descendants(root)
        if not forked:
            tree.stdin.write(b"\n")
            tree.stdin.close()
            forked.extend(wait_until(lambda: set(descendants(root)) - set(seen), "the fork"))
        return seen

    wait_until(lambda: descendants(tree.pid), "the inner shell")
    with monkeypatch.context() as changed:
        changed.setattr(processes, "descendants", look)
        termination.kill_tree(tree.pid)
    tree.wait()
    wait_until(lambda: not any(map(lives, forked)), "all of it to be gone")
    assert forked
