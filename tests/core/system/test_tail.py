"""Reading a growing file of lines, each line once."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from subdeck.core.system import line_file as module
from subdeck.core.system.line_file import BLOCK, FIRST_BYTES, HeldFile, LineTail

HELD = pytest.mark.parametrize("held", [False, True], ids=["opened", "held"])


@pytest.mark.slow
@HELD
@pytest.mark.parametrize("seed", range(8))
def test_every_line_once(tmp_path: Path, seed: int, *, held: bool) -> None:
    """However a file grows, and with any limit, each whole line comes once and in order."""
    chance = random.Random(seed)
    path = tmp_path / "lines"
    tail = LineTail(str(path), held=held)
    lines = [b"x" * int(2 * BLOCK * chance.random() ** 9) for _ in range(600)]
    content = b"".join(line + b"\n" for line in lines)
    read: list[bytes] = []
    position = 0
    with path.open("ab", buffering=0) as file:
        while position < len(content):
            size = int(4 * FIRST_BYTES * chance.random())
            file.write(content[position : position + size])
            position += size
            read += tail.lines(chance.choice((None, 100, 100_000)))
    while tail.has_grown():
        read += tail.lines()
    assert lines == read


@HELD
def test_a_file_that_comes_shrinks_and_is_replaced(tmp_path: Path, *, held: bool) -> None:
    """A missing file has no lines; a shortened or replaced one is read from its beginning."""
    path = tmp_path / "lines"
    tail = LineTail(str(path), held=held)
    assert ([], False) == (list(tail.lines()), tail.has_grown())
    path.write_bytes(b"one\ntwo\nthr")
    assert tail.has_grown()
    assert [b"one", b"two"] == list(tail.lines())
    path.write_bytes(b"new\n")
    assert tail.has_grown()
    assert [b"new"] == list(tail.lines())
    other = tmp_path / "other"
    other.write_bytes(b"longer than the one before\n")
    other.rename(path)
    assert tail.has_grown()
    assert [b"longer than the one before"] == list(tail.lines())
    path.unlink()
    assert ([], False) == (list(tail.lines()), tail.has_grown())


def test_held_files_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open files stay within their limit, and unused ones are closed."""
    monkeypatch.setattr(module, "MOST_HELD", HeldFile.held + 2)
    before = len(os.listdir("/proc/self/fd"))
    tails = [LineTail(str(tmp_path / str(number)), held=True) for number in range(5)]
    for number in range(5):
        (tmp_path / str(number)).write_bytes(b"one\n")
    assert [[b"one"]] * 5 == [list(tail.lines()) for tail in tails]
    assert before + 2 == len(os.listdir("/proc/self/fd"))
    assert [[]] * 5 == [list(tail.lines()) for tail in tails]
    del tails
    assert before == len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("failures", [1, 2])
def test_a_descriptor_that_went_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    """A file with a stale descriptor is reopened, at the latest by the next check."""
    path = tmp_path / "lines"
    path.write_bytes(b"one\n")
    tail = LineTail(str(path), held=True)
    before = HeldFile.held
    assert tail.has_grown()
    fstat, left = os.fstat, [OSError(errno.ESTALE, "Stale file handle")] * failures

    def fail_at_first(descriptor: int) -> os.stat_result:
        if left:
            raise left.pop()
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", fail_at_first)
    assert tail.has_grown() is (failures == 1)
    assert [b"one"] == list(tail.lines())
    assert before + 1 == HeldFile.held


@pytest.mark.processes
def test_files_leave_room_for_others() -> None:
    """At most a quarter of the process's file limit is kept open."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
        "from subdeck.core.system.line_file import MOST_HELD; print(MOST_HELD)"
    )
    assert "16\n" == subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
