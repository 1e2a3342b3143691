"""Files and locks: written whole, private, and released with their process."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.errors import explained
from subdeck.core.system import files
from subdeck.core.system.directory import RefusedError


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_whole_file_is_private_and_leaves_nothing_beside(tmp_path: Path) -> None:
    """A file written whole is private and leaves no other file in its directory."""
    files.write_whole(str(tmp_path / "a"), (b"one", b"two"))
    assert (tmp_path / "a").read_bytes() == b"onetwo"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert names(tmp_path) == ["a"]


def test_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    """A file keeps its group permissions when it is written again."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o664)
    files.write_whole(str(path), b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o664)


@pytest.mark.parametrize("write", [files.write_whole, files.write_new])
def test_failed_write_changes_nothing(tmp_path: Path, write: type) -> None:
    """A failed write leaves neither the file nor a temporary one, and the error names file and way out."""

    def broken() -> Iterator[bytes]:
        yield b"part"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space") as refusal:
        write(str(tmp_path / "a"), broken())
    assert names(tmp_path) == []
    told = explained(refusal.value)
    assert (str(tmp_path / "a"), True) == (told.where, told.hint.startswith("free space on that disk"))


def test_new_file_replaces_nothing(tmp_path: Path) -> None:
    """An existing file stays, even a dangling link."""
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("a", "link"):
        with pytest.raises(FileExistsError):
            files.write_new(str(tmp_path / name), b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a", "link"]


def test_new_file_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hard links the file is made by a rename."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    files.write_new(str(tmp_path / "a"), b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("size", [0, 10, 32 * 1024, 100_000])
def test_read_is_whole(tmp_path: Path, size: int) -> None:
    """A file of any size is read to its end."""
    (tmp_path / "a").write_bytes(b"x" * size)
    assert files.read(str(tmp_path / "a")) == b"x" * size


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    """A named pipe without a writer is refused at once, and so is a directory."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RefusedError, match="not a regular file"):
        files.open_regular(str(tmp_path / "pipe"))
    with pytest.raises(RefusedError, match="directory"):
        files.open_regular(str(tmp_path))


def test_without_locks_nothing_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks is an error, never another process's lock."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    descriptor = files.open_lock(str(tmp_path / "lock"))
    with pytest.raises(OSError, match="No locks available"):
        files.try_lock(descriptor)
    os.close(descriptor)


def test_locks_exclude_and_share(tmp_path: Path) -> None:
    """An exclusive lock excludes all others, a shared one only exclusive ones; closing releases it."""
    one, two, three = (files.open_lock(str(tmp_path / "lock")) for _ in range(3))
    files.lock(one, shared=True)
    assert files.try_lock(two, shared=True)
    assert not files.try_lock(three)
    os.close(one)
    files.unlock(two)
    assert files.try_lock(three)
    assert not files.try_lock(two, shared=True)
    os.close(two)
    os.close(three)


def test_a_file_that_is_certainly_not_there(tmp_path: Path) -> None:
    """A missing file and a path below a file do not exist; an unreadable path is an error."""
    (tmp_path / "a").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert files.is_there(str(tmp_path / "a")) and files.is_there(str(tmp_path / "loop"))
    assert not files.is_there(str(tmp_path / "b")) and not files.is_there(str(tmp_path / "a/b"))
    with pytest.raises(OSError, match="Too many levels"):
        files.is_there(str(tmp_path / "loop/b"))
