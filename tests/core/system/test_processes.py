"""Facts about processes, from Linux."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.system import processes

from tests.factories import lives
from tests.waiting import wait_until

pytestmark = pytest.mark.processes


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen]]:
    """Processes that are killed and reaped after the test."""
    children: list[subprocess.Popen] = []
    yield children
    for child in children:
        child.kill()
        child.wait()


def sleep(**environment: str) -> subprocess.Popen:
    return subprocess.Popen(["sleep", "1000"], env=os.environ | environment, stdin=subprocess.DEVNULL)


def test_identity() -> None:
    """A process keeps its start time, and a pid without a process has none."""
    own = os.getpid()
    assert processes.start_time(own) == processes.start_time(own) is not None
    assert processes.start_time(2**22 + 1) is None


def test_names_with_brackets(tmp_path, started) -> None:
    """A program's name that looks like the end of its stat record does not confuse the reader."""
    program = tmp_path / ") Z 1 (x"
    program.symlink_to(subprocess.check_output(["which", "sleep"], text=True).strip())
    child = subprocess.Popen([str(program), "1000"])
    started.append(child)
    wait_until(lambda: b"1000" in Path(f"/proc/{child.pid}/cmdline").read_bytes(), "the program to be loaded")
    assert child.pid in processes.descendants(os.getpid())
    assert lives(child.pid)


def test_zombies_do_not_live(started) -> None:
    """An unreaped process has a start time, but is neither alive nor a descendant."""
    child = sleep()
    started.append(child)
    began = processes.start_time(child.pid)
    assert began is not None and processes.is_alive(child.pid, began)
    os.kill(child.pid, signal.SIGKILL)
    wait_until(lambda: not processes.is_alive(child.pid, began), "the child to die")
    assert began == processes.start_time(child.pid)
    assert child.pid not in processes.descendants(os.getpid())


def test_descendants_of_all_generations(started) -> None:
    """Children, their children, and those in other sessions are found, parents first."""
    code = "import subprocess; subprocess.run(['sh', '-c', 'setsid -w sleep 1000'])"
    child = subprocess.Popen([sys.executable, "-c", code])
    started.append(child)

    def named() -> list[str]:
        found = processes.descendants(child.pid)
        return [Path(f"/proc/{pid}/comm").read_text().strip() for pid in found]

    wait_until(lambda: named()[-1:] == ["sleep"], "the last generation")
    below = processes.descendants(child.pid)
    assert os.getsid(below[-1]) != os.getsid(0)
    for pid in below:
        os.kill(pid, signal.SIGKILL)


def test_marks(started) -> None:
    """Processes are found by the whole value of their mark."""
    ours, other = sleep(SUBDECK_RUN_ID="20260101-000000-aaaaaa"), sleep(SUBDECK_RUN_ID="20260101-000000-aaaaaab")
    started += [ours, other]
    wait_until(lambda: processes.marked("20260101-000000-aaaaaa"), "the mark to be seen")
    assert [ours.pid] == processes.marked("20260101-000000-aaaaaa")


def test_reaping_spares_the_child() -> None:
    """Orphans are reaped, except for the child, whose exit is left to its waiter."""
    child, orphans = sleep(), [sleep() for _ in range(3)]
    for process in orphans:
        process.kill()
    wait_until(lambda: not any(lives(process.pid) for process in orphans), "the orphans to die")
    processes.reap(keep=child.pid)
    assert [None] * 3 == [processes.start_time(process.pid) for process in orphans]
    for process in orphans:
        process.wait()
    child.kill()
    wait_until(lambda: not lives(child.pid), "the child to die")
    processes.reap(keep=child.pid)
    assert -signal.SIGKILL == child.wait()
