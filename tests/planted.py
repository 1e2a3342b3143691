"""A project with planted files that are not what they seem, and a world around it that must stay unchanged."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

Tree = dict[str, tuple[int, int, str | bytes]]


def tree_of(root: Path) -> Tree:
    """Return everything below a directory, with kind, time of the last change, and content."""
    found: Tree = {}
    for directory, _, names in os.walk(root):
        for path in (Path(directory), *(Path(directory, name) for name in names)):
            status = path.lstat()
            content: str | bytes = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode) and status.st_size < 1 << 20:
                content = path.read_bytes()
            found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def _socket(path: Path) -> None:
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{directory}/{path.name}")  # a socket's own path has 107 bytes at most
    finally:
        os.close(directory)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _unreadable(path: Path) -> None:
    path.write_bytes(b"{}")
    path.chmod(0)


_TARGETS = {
    "link_to_file": "secret",
    "link_to_directory": "directory",
    "link_to_nothing": "not-there",
    "link_to_zero": "/dev/zero",
}
_MAKERS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "directory": Path.mkdir,
    "socket": _socket,
    "empty": Path.touch,
    "unreadable": _unreadable,
    "sparse": _sparse,
}
KINDS = (*_TARGETS, *_MAKERS)
"""The kinds of things to plant under a name."""


def plant(kind: str, path: Path, outside: Path) -> None:
    """Plant something of this kind; links lead to `outside`."""
    if kind in _TARGETS:
        path.symlink_to(outside / _TARGETS[kind])
    else:
        _MAKERS[kind](path)


def make_outside(root: Path) -> Path:
    """Make another user's files, including some with the names of a run's files."""
    outside = root / "outside"
    (outside / "directory").mkdir(parents=True)
    (outside / "secret").write_text("secret\n")
    (outside / "directory" / "20260101-000000-abcdef").mkdir()
    for name in ("environment", "id_rsa", "events.jsonl"):
        (outside / "directory" / name).write_text(f"{name} of somebody\n")
    return outside
