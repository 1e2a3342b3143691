"""A snapshot's own index, started from known file states, as reading all files takes long."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator

from msgspec import Struct

from ..system import files
from ..text.plain import one_line
from .names import worded
from .program import Git, GitError, GitResult, failure
from .repository import Repository

_MOST_SMALL = 4 * 1024 * 1024


def beginnings(git: Git, repository: Repository, index: str, seed: str = "") -> Iterator[None]:
    """Prepare an index, and another one each time that git could not use the last.

    In order: the last snapshot's; a copy of `seed`, or of the user's, which has file states from git's last check; the
    committed files; an empty one, which reads all files. Raises GitError and OSError.
    """
    if os.path.exists(index):
        yield
    files.remove(index)
    if _copy(seed, index) or begun(git, repository, index):
        yield
    files.remove(index)
    if repository.head:
        try:
            git.run("read-tree", repository.head)
        except GitError:
            pass  # some committed objects are missing
        else:
            yield
    files.remove(index)
    git.run("read-tree", "--empty")
    yield


def begun(git: Git, repository: Repository, index: str) -> bool:
    """Copy the user's index; return whether git can use the copy. Raises OSError."""
    if not _copy(os.path.join(repository.git_dir, "index"), index):
        return False
    for name in files.names(repository.git_dir):
        if name.startswith("sharedindex."):
            content = small_file(os.path.join(repository.git_dir, name), 1 << 30)
            files.write_whole(os.path.join(os.path.dirname(index), name), content)
    try:
        _look_everywhere(git, repository)
    except GitError:
        return False  # it is corrupt
    return True


def _copy(path: str, index: str) -> bool:
    """Copy an index; return whether it existed."""
    try:
        source, status = files.open_regular(path)
    except OSError:
        return False
    with open(source, "rb") as read, open(files.open_private(index, os.O_WRONLY | os.O_TRUNC), "wb") as written:
        shutil.copyfileobj(read, written, 1 << 20)
    # git detects a file written after the index, within the same clock tick, by the time of the index.
    os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns))
    return True


def _look_everywhere(git: Git, repository: Repository) -> None:
    """Clear the flags that hide files from git: `assume-unchanged`, and `skip-worktree` on files that exist. Raises
    GitError.
    """
    marked: list[tuple[bytes, bytes]] = re.findall(rb"(?:\A|\0)([Sa-z]) ([^\0]*)", git.run("ls-files", "-v", "-z"))
    root = os.fsencode(repository.root)
    assumed = [path for mark, path in marked if mark != b"S"]
    there = [path for mark, path in marked if mark in b"Ss" and os.path.lexists(os.path.join(root, path))]
    for option, paths in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", there)):
        if paths:
            git.run("update-index", option, "-z", "--stdin", input=b"\0".join(paths) + b"\0")


def small_file(path: str, most: int = _MOST_SMALL) -> bytes:
    """Read a regular file of at most `most` bytes; empty if there is none."""
    try:
        descriptor, status = files.open_regular(path)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        return file.read() if status.st_size <= most else b""


# --- a snapshot that is being taken ----------------------------------------------------------------------------------

LARGE = 20 * 1024 * 1024
"""Size in bytes above which a file's content is not stored."""
MOST = 512 * 1024 * 1024
"""Total bytes that one snapshot stores at most."""
NESTED = "a separate repository"
_NO_NAME = "git takes no file of that name"
_MOST_STDERR = 60_000
"""Characters of git's stderr that are certainly complete."""
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Skipped(Struct, frozen=True):
    """A file in the working tree without its content in the snapshot."""

    path: str
    why: str
    """A clause: `too large to save`."""
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    """Cannot be set by the program that writes it."""


class Snapshot(Struct, frozen=True):
    tree: str
    skipped: tuple[Skipped, ...] = ()
    head: str = ""
    """The checked-out commit; empty without one."""
    note: str = ""
    """A sentence on anything else that is missing."""


class Taking:
    """One snapshot in progress."""

    def __init__(self, git: Git, repository: Repository, largest: int) -> None:
        self._git = git
        self._repository = repository
        self._root = os.fsencode(repository.root)
        self._largest = largest
        self._bytes_left = MOST
        self._skipped: dict[bytes, Skipped] = {}

    def snapshot(self) -> Snapshot:
        """Take the snapshot. Raises GitError; GitTimeout if git blocks, as on a pipe in the place of a file."""
        answer = self._git.ask(
            *("status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=dirty", "--no-ahead-behind")
        )
        if answer.code:
            raise _failed("status", answer.stderr, self._repository)
        if self._repository.tree and _is_clean(answer.output):
            tree = self._repository.tree
        else:
            changed = [path for path in _changed(answer.output) if self._is_storable(path)]
            if changed:
                self._store(changed)
            tree = self._git.run("write-tree", "--missing-ok").strip().decode("ascii", "replace")
        unread = len(re.findall(r"^warning: could not open directory", answer.stderr, re.M))
        return Snapshot(
            tree,
            tuple(self._skipped[path] for path in sorted(self._skipped)),
            self._repository.head or "",
            f"{unread} director{'y' if unread == 1 else 'ies'} cannot be read" if unread else "",
        )

    def _skip(self, path: bytes, why: str, status: os.stat_result | None = None) -> None:
        name = path.rstrip(b"/")
        file_status = status if status and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)) else None
        times = (file_status.st_size, file_status.st_mtime_ns, file_status.st_ctime_ns) if file_status else ()
        self._skipped[name] = Skipped(worded(name), why, *times)

    def _is_storable(self, path: bytes) -> bool:
        """Whether a changed file's content can be stored; otherwise skip it. A deleted file can."""
        if path.endswith(b"/"):
            self._skip(path, NESTED)
            return False
        full = os.path.join(self._root, path)
        try:
            status = os.lstat(full)
        except FileNotFoundError:
            return True
        except OSError as error:
            if isinstance(error, NotADirectoryError):
                return True
            self._skip(path, f"cannot read it: {error.strerror}")
            return False
        if kind := _KINDS.get(stat.S_IFMT(status.st_mode)):
            self._skip(path, kind, status)
            return False
        if not stat.S_ISREG(status.st_mode):
            return True
        if status.st_size > self._largest:
            self._skip(path, "too large to save", status)
        elif not os.access(full, os.R_OK):
            self._skip(path, "no read permission", status)
        elif status.st_size > self._bytes_left:
            self._skip(path, "too many new files to save", status)
        else:
            self._bytes_left -= status.st_size
            return True
        return False

    def _store(self, paths: list[bytes]) -> None:
        """Store files; find by halving any that git refuses, and skip them."""
        answer = self._git.ask(
            *("update-index", "-z", "--add", "--remove", "--replace", "--stdin"), input=b"\0".join(paths) + b"\0"
        )
        refused = set(re.findall(r"^Ignoring path (.*)$", answer.stderr, re.M))
        refused_paths = {path for path in paths if os.fsdecode(path) in refused} if refused else set[bytes]()
        for path in refused_paths:
            self._skip(path, _NO_NAME, self._status(path))
        if not answer.code and len(refused_paths) == len(refused) and len(answer.stderr) < _MOST_STDERR:
            return
        if not (paths := [path for path in paths if path not in refused_paths]):
            return
        if len(paths) > 1:
            half = len(paths) // 2
            self._store(paths[:half])
            self._store(paths[half:])
            return
        if re.search(r"unable to write|No space left|index file|index\.lock", answer.stderr):
            raise _failed("update-index", answer.stderr, self._repository)
        lines = [line for line in answer.stderr.splitlines() if line.startswith(("error: ", "fatal: "))]
        why = lines[0].partition(": ")[2] if lines else _NO_NAME
        self._skip(paths[0], one_line(why, 120), self._status(paths[0]))

    def _status(self, path: bytes) -> os.stat_result | None:
        try:
            return os.lstat(os.path.join(self._root, path))
        except OSError:
            return None


def _is_clean(output: bytes) -> bool:
    """Whether everything is as committed, and nothing is left to compute."""
    return not output.strip(b"\0")


def _changed(output: bytes) -> Iterator[bytes]:
    """Yield paths that differ from the index, and untracked ones, from the output of `status`."""
    for line in output.split(b"\0"):
        match line[:1]:
            case b"?":
                yield line[2:]
            case b"1" if line[3:4] != b".":
                yield line.split(b" ", 8)[8]
            case b"u":
                yield line.split(b" ", 10)[10]
            case _:
                continue


def _failed(command: str, stderr: str, repository: Repository) -> GitError:
    return failure((command,), GitResult(128, b"", stderr), repository.root)
