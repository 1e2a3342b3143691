"""Starting a program with our streams."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from subdeck.core.system import processes, spawn

from tests.waiting import wait_until


def start(
    argv: Sequence[str], *, stdin: int | None = None, directory: str = "/", environment: Mapping[str, str] | None = None
) -> spawn.Child:
    variables = {"PATH": os.environ["PATH"]} if environment is None else environment
    return spawn.start(argv, directory=directory, environment=variables, stdin=stdin)


def said_by(child: spawn.Child) -> tuple[str, str, int | None]:
    """Return a child's whole stdout and stderr, and its exit code."""
    said = []
    for descriptor in (child.stdout, child.stderr):
        with open(descriptor, encoding="utf-8", closefd=False) as stream:
            said.append(stream.read())
    wait_until(lambda: child.poll() is not None, "its end")
    child.close()
    return (said[0], said[1], child.returncode)


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.processes
def test_streams_directory_and_environment(tmp_path: Path) -> None:
    """A program reads the given file, in its own directory and with exactly its environment."""
    (tmp_path / "words").write_text("hello\n")
    words = os.open(tmp_path / "words", os.O_RDONLY)
    before = descriptors()
    script = "read word; echo $word $NAME ${HOME-none} $PWD; echo trouble >&2; exit 3"
    child = start(["/bin/sh", "-c", script], stdin=words, directory=str(tmp_path), environment={"NAME": "of it"})
    assert (f"hello of it none {tmp_path}\n", "trouble\n", 3) == said_by(child)
    assert (before, None) == (descriptors(), child.stdin)
    os.close(words)


@pytest.mark.processes
def test_what_is_written_to_it() -> None:
    """Without a file a program reads from a pipe."""
    child = start(["cat"])
    assert child.stdin is not None
    os.write(child.stdin, b"so\n")
    os.close(child.stdin)
    assert ("so\n", "", 0) == said_by(child)


@pytest.mark.processes
def test_it_is_on_its_own(tmp_path: Path) -> None:
    """A program has its own session, none of our descriptors and default signal handlers."""
    inherited = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        child = start(["cat"])
        assert child.stdin is not None
        assert child.pid == os.getsid(child.pid)
        os.set_blocking(child.stdout, True)
        os.write(child.stdin, b"so\n")
        assert b"so\n" == os.read(child.stdout, 4096)  # so the start is complete
        assert {"0", "1", "2"} == set(os.listdir(f"/proc/{child.pid}/fd"))
        status = Path(f"/proc/{child.pid}/status").read_text().split()
        blocked, ignored = (int(status[status.index(name) + 1], 16) for name in ("SigBlk:", "SigIgn:"))
        assert (0, 0) == (blocked, ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1))
        child.terminate()
        assert ("", "", -signal.SIGTERM) == said_by(child)
        os.close(child.stdin)
        child.terminate()
        assert set() == signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(inherited)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("argv", "directory", "number", "named"),
    [
        (["/nowhere/program"], "/", errno.ENOENT, "/nowhere/program"),
        (["no-such-program"], "/", errno.ENOENT, "no-such-program"),
        (["/etc/passwd"], "/", errno.EACCES, "/etc/passwd"),
        (["true"], "/nowhere", errno.ENOENT, "/nowhere"),
        (["true", "long" * 10_000_000], "/", errno.E2BIG, "true"),
    ],
)
def test_what_cannot_be_started(argv: list[str], directory: str, number: int, named: str) -> None:
    """The error names the file at fault, and the failed start leaves nothing behind."""
    before, children = descriptors(), processes.children()
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        start(argv, directory=directory)
    assert (number, named) == (caught.value.errno, caught.value.filename)
    assert (before, children) == (descriptors(), processes.children())


@pytest.mark.parametrize(
    ("argv", "environment"),
    [(["true", "a\0b"], {}), (["true"], {"NAME": "a\0b"}), (["true"], {"A=B": "c"}), (["true", "\ud800"], {})],
)
def test_words_that_no_program_can_be_given(argv: list[str], environment: dict[str, str]) -> None:
    """Arguments that no program can receive are refused before the fork."""
    before = descriptors()
    with pytest.raises(ValueError, match=r"null byte|has a =|surrogates"):
        start(argv, environment={"PATH": os.environ["PATH"], **environment})
    assert before == descriptors()


@pytest.mark.processes
def test_a_program_that_may_not_be_run_further_up_the_path(tmp_path: Path) -> None:
    """A program is searched along the path; a non-executable one is skipped, and reported if there is no other."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text(f"#!/bin/sh\necho {name}\n")
    path = {"PATH": f"{tmp_path}/missing:{tmp_path}/first:{tmp_path}/second"}
    with pytest.raises(PermissionError):
        start(["tool"], environment=path)
    (tmp_path / "second" / "tool").chmod(0o755)
    assert ("second\n", "", 0) == said_by(start(["tool"], environment=path))
