"""Snapshots: what all files of a working tree are at a moment, as a tree of git's; nothing of the user's is touched.

A store is a small repository of ours: an index and objects of its own, and the repository's objects to borrow from. Its
settings are those of the repository that say how files are read, and no others, so that nothing in a checkout makes git
run a program here; the user's own filters (git-lfs) run as ever.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from ..system import files
from ..text.plain import one_line
from . import configuration
from .configuration import Setting
from .index import beginnings, small_file
from .names import worded
from .program import PATIENCE_S, Answer, Git, GitError, GitTimeout, failure, quoted
from .repository import Repository

LARGE = 20 * 1024 * 1024
"""Bytes from which on the content of a file is not stored."""
MOST = 512 * 1024 * 1024
"""Bytes that one snapshot stores at most."""
_INFO = ("exclude", "attributes", "sparse-checkout")
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Skipped(Struct, frozen=True):
    """A file that is in the working tree and whose content is not in the snapshot."""

    path: str
    why: str
    """A clause: `too large to be kept`."""
    size: int = 0
    mtime_ns: int = 0


class Snapshot(Struct, frozen=True):
    tree: str
    skipped: tuple[Skipped, ...] = ()
    head: str = ""
    """The commit that was checked out; empty where there was none."""
    note: str = ""
    """What is not in it besides, a sentence."""


class Store:
    """An index and objects of ours, in a directory that is made when it is first needed."""

    def __init__(self, directory: str, *, aside: Sequence[str] = ()) -> None:
        self.directory = directory
        self.objects = os.path.join(directory, "objects")
        self.index = os.path.join(directory, "index")
        self._aside = (directory, *aside)
        """Directories that are in no snapshot, also where they are in the working tree."""

    def take(
        self,
        repository: Repository,
        *,
        into_repository: bool = False,
        largest: int = LARGE,
        patience: float = PATIENCE_S,
    ) -> Snapshot:
        """Store what the working tree is now: also what is not committed, and what is untracked but not ignored.

        With `into_repository` what is new is written among the repository's own objects, where a commit can name it.
        Raises GitError and OSError.
        """
        if repository.trouble:
            raise GitError(repository.trouble, where=repository.root)
        with self._alone():
            settings = self._prepare(repository)
            index = os.path.join(self.directory, "index.base" if into_repository else "index")
            if into_repository:
                files.remove(index)
            git = self._git(repository, settings, index, patience, into_repository=into_repository)
            fault: GitError | None = None
            for _ in beginnings(git, repository, index):
                try:
                    return _Taking(git, repository, largest).snapshot()
                except GitTimeout:
                    raise
                except GitError as error:
                    fault = fault or error
            raise fault or GitError("git can make no index", where=self.directory)

    def git(self, repository: Repository, *, patience: float = PATIENCE_S) -> Git:
        """Return git for what is in the store and the repository, to compare and merge. Raises GitError and OSError."""
        with self._alone():
            settings = self._prepare(repository)
        return self._git(repository, settings, self.index, patience)

    def _git(
        self,
        repository: Repository,
        settings: Sequence[Setting],
        index: str,
        patience: float,
        *,
        into_repository: bool = False,
    ) -> Git:
        more: list[Setting] = [*settings]
        if into_repository:
            more.append(("lfs.storage", os.path.join(repository.common_dir, "lfs")))
        return Git(
            repository.root,
            git_dir=self.directory,
            work_tree=repository.root,
            index=index,
            objects=repository.objects if into_repository else None,
            settings=more,
            is_own=True,
            patience=patience,
        )

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Have the store alone: a lock of git's that stands in it then was left behind."""
        files.make_private_directory(self.directory)
        lock = files.open_lock(os.path.join(self.directory, "store.lock"))
        try:
            files.lock(lock)
            for name in ("index.lock", "index.base.lock"):
                files.remove(os.path.join(self.directory, name))
            yield
        finally:
            os.close(lock)

    def _prepare(self, repository: Repository) -> list[Setting]:
        """Make the store what git takes for a repository; return the settings that go with it."""
        for name in ("objects/info", "refs", "info"):
            files.make_private_directory(os.path.join(self.directory, name))
        entries = repository.git.configured()
        is_other = repository.object_format != "sha1"
        lines = ["[core]", f"\trepositoryformatversion = {int(is_other)}", "\tbare = false"]
        if is_other:
            lines += ["[extensions]", f"\tobjectFormat = {repository.object_format}"]
        self._write("config", "\n".join([*lines, ""]).encode())
        self._write("HEAD", f"{repository.head or 'ref: refs/heads/none'}\n".encode())
        self._write("objects/info/alternates", os.fsencode(quoted(repository.objects)) + b"\n")
        for name in _INFO:
            above = repository.git_dir if name == "sparse-checkout" else repository.common_dir
            content = small_file(os.path.join(above, "info", name))
            if name == "exclude":
                content += self._hidden(repository.root)
            self._write(f"info/{name}", content)
        settings = [entry for entry in configuration.harmless(entries) if not entry[0].startswith("extensions.")]
        settings += [
            ("core.untrackedCache", "true"),
            ("core.preloadIndex", "true"),
            ("core.fsync", "none"),
            ("core.bigFileThreshold", str(LARGE)),
            ("index.threads", "0"),
            ("feature.manyFiles", "false"),
        ]
        hides_untracked = configuration.value_of(entries, "status.showuntrackedfiles", own=True) in ("no", "false")
        settings.append(("status.showUntrackedFiles", "no" if hides_untracked else "all"))
        settings += _own_lists(repository, entries)
        return settings

    def _hidden(self, root: str) -> bytes:
        """Return lines that have git leave out what is ours."""
        lines = b""
        for directory in self._aside:
            path = os.path.relpath(os.path.realpath(directory), root)
            if not path.startswith(os.pardir):
                lines += b"\n/" + re.sub(rb"([\\*?\[\] !#])", rb"\\\1", os.fsencode(path)) + b"/\n"
        return lines

    def _write(self, name: str, content: bytes) -> None:
        """Write one of the files of the store where it is not so already: its time is what git goes by."""
        path = os.path.join(self.directory, name)
        if not os.path.exists(path) or files.content(path) != content:
            files.write_whole(path, content)


def _own_lists(repository: Repository, entries: Sequence[configuration.Entry]) -> list[Setting]:
    """Return the lists of ignored files and attributes that a repository's settings name inside of its working tree."""
    found: list[Setting] = []
    for key in ("core.excludesfile", "core.attributesfile"):
        if value := configuration.value_of(entries, key, own=True):
            path = os.path.realpath(os.path.join(repository.root, os.path.expanduser(value)))
            if f"{path}/".startswith(f"{repository.root}/") and os.path.isfile(path):
                found.append((key, path))
    return found


class _Taking:
    """One snapshot that is being taken."""

    def __init__(self, git: Git, repository: Repository, largest: int) -> None:
        self._git = git
        self._repository = repository
        self._root = os.fsencode(repository.root)
        self._largest = largest
        self._left = MOST
        self._skipped: dict[bytes, Skipped] = {}

    def snapshot(self) -> Snapshot:
        answer = self._git.ask(
            *("status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=dirty", "--no-ahead-behind")
        )
        if answer.code:
            raise _failed("status", answer.said, self._repository)
        changed = [path for path in _changed(answer.output) if self._is_storable(path)]
        if changed:
            self._store(changed)
        tree = self._git.run("write-tree", "--missing-ok").strip().decode("ascii", "replace")
        unread = len(re.findall(r"^warning: could not open directory", answer.said, re.M))
        return Snapshot(
            tree,
            tuple(self._skipped[path] for path in sorted(self._skipped)),
            self._repository.head or "",
            f"{unread} director{'y' if unread == 1 else 'ies'} cannot be read" if unread else "",
        )

    def _skip(self, path: bytes, why: str, status: os.stat_result | None = None) -> None:
        name = path.rstrip(b"/")
        size, mtime = (status.st_size, status.st_mtime_ns) if status and stat.S_ISREG(status.st_mode) else (0, 0)
        self._skipped[name] = Skipped(worded(name), why, size, mtime)

    def _is_storable(self, path: bytes) -> bool:
        """Return whether the content of a changed file can be stored; else it is skipped. What is gone can be."""
        if path.endswith(b"/"):
            self._skip(path, "a repository of its own")
            return False
        full = os.path.join(self._root, path)
        try:
            status = os.lstat(full)
        except FileNotFoundError:
            return True
        except OSError as error:
            if isinstance(error, NotADirectoryError):
                return True
            self._skip(path, f"it cannot be read: {error.strerror}")
            return False
        if kind := _KINDS.get(stat.S_IFMT(status.st_mode)):
            self._skip(path, kind, status)
            return False
        if not stat.S_ISREG(status.st_mode):
            return True
        if status.st_size > self._largest:
            self._skip(path, "too large to be kept", status)
        elif not os.access(full, os.R_OK):
            self._skip(path, "it may not be read", status)
        elif status.st_size > self._left:
            self._skip(path, "too much is new to be kept", status)
        else:
            self._left -= status.st_size
            return True
        return False

    def _store(self, paths: list[bytes]) -> None:
        """Store files; those that git refuses are found by halving, and skipped."""
        answer = self._git.ask(
            *("update-index", "-z", "--add", "--remove", "--replace", "--stdin"), input=b"\0".join(paths) + b"\0"
        )
        if not answer.code:
            return
        if len(paths) > 1:
            half = len(paths) // 2
            self._store(paths[:half])
            self._store(paths[half:])
            return
        if re.search(r"unable to write|No space left|index file|index\.lock", answer.said):
            raise _failed("update-index", answer.said, self._repository)
        lines = [line for line in answer.said.splitlines() if line.startswith(("error: ", "fatal: "))]
        why = lines[0].partition(": ")[2] if lines else "git refuses it"
        self._skip(paths[0], one_line(why, 120))


def _changed(output: bytes) -> Iterator[bytes]:
    """Yield the paths that differ from the index, and those that are untracked, from what `status` writes."""
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


def _failed(command: str, said: str, repository: Repository) -> GitError:
    return failure((command,), Answer(128, b"", said), repository.root)
