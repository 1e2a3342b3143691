"""Snapshots: all files of a working tree at one moment, as a git tree; the user's files are not touched.

A store is a small repository of subdeck's: its own index and objects, and borrowed objects of the repository. It copies
only settings for how files are read, so nothing in a checkout makes git run a program here. The user's own filters
(git-lfs) still run.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from ..system import files
from ..text.plain import one_line
from . import read_settings
from .checkout import InTheWay, check_room, check_unchanged, write_files
from .configuration import Setting
from .index import LARGE, NESTED, Skipped, Snapshot, Taking, beginnings, begun
from .names import name_of, worded
from .program import PATIENCE_S, Git, GitError, GitTimeout, quoted
from .reading_rules import Reading
from .repository import Repository, find

__all__ = ["LARGE", "InTheWay", "Skipped", "Snapshot", "Store"]

WRITING_S = 600.0
"""Seconds for writing files: a killed command leaves them half written."""
_MOST_INSIDE = 20
"""Inner repositories to inspect: each takes as many commands as the outer one."""
_READ = (".gitattributes", ".gitignore")
"""Files that git reads first in a working tree; for deeper ones only its time limit helps."""
_GONE = ".gone"
"""Name suffix of a store that is being removed."""


class Store:
    """subdeck's own index and objects, in a directory created at first use."""

    def __init__(
        self, directory: str, *, aside: Sequence[str] = (), reading: Reading | None = None, seed: str = ""
    ) -> None:
        """With a `reading`, files are read as at that time, despite later settings of the repository. With a `seed`,
        the index starts as a copy of it, if it exists: the agent can change the repository's.
        """
        self.directory = directory
        self.reading = reading
        """How files are read; None until the first snapshot, unless given."""
        self._first = reading
        self._read = ""
        """The repository that was read last, by its root."""
        self._seed = seed
        self._inside: dict[str, Reading] = {}
        self.objects = os.path.join(directory, "objects")
        self.index = os.path.join(directory, "index")
        self._aside = (directory, *aside)
        """Directories excluded from snapshots, even inside the working tree."""

    def take(
        self,
        repository: Repository,
        *,
        into_repository: bool = False,
        largest: int = LARGE,
        patience: float = PATIENCE_S,
    ) -> Snapshot:
        """Store the current working tree, with uncommitted files, and untracked files that are not ignored.

        `into_repository` writes new objects into the repository, where a commit can refer to them. Raises GitError and
        OSError.
        """
        with self._alone():
            settings = self._prepare(repository)
            taken = self._taken(repository, settings, largest, patience, into_repository=into_repository)
            skipped = tuple(self._skipped_files(repository, taken, largest, patience))
            if self.reading and self._inside and not self._first:
                self.reading = replace(self.reading, inside=self._inside)
            return replace(taken, skipped=skipped, note="; ".join(filter(None, (taken.note, self._unrun_words()))))

    def begin(self, repository: Repository, index: str) -> None:
        """Read how files are to be read, and copy the index as a start for snapshots. Raises GitError and OSError."""
        with self._alone():
            settings = self._prepare(repository)
            begun(self._git(repository, settings, index, PATIENCE_S), repository, index)

    def _unrun_words(self) -> str:
        """Explain that files are stored unfiltered if only the repository's settings define the filter."""
        if self.reading is None or not self.reading.unrun:
            return ""
        names = one_line(", ".join(self.reading.unrun), 80)
        return f"filters from the repository's own settings are not run ({names})"

    def _taken(
        self,
        repository: Repository,
        settings: Sequence[Setting],
        largest: int,
        patience: float,
        *,
        into_repository: bool = False,
    ) -> Snapshot:
        index = os.path.join(self.directory, "index.base") if into_repository else self.index
        if into_repository:  # another snapshot's objects are not in the repository
            files.remove(index)
        git = self._git(repository, settings, index, patience, into_repository=into_repository)
        fault: GitError | None = None
        for _ in beginnings(git, repository, index, self._seed):
            try:
                return Taking(git, repository, largest).snapshot()
            except GitTimeout:
                raise
            except GitError as error:
                fault = fault or error
            finally:
                _make_private(index)
        raise fault or GitError("git cannot create an index", where=self.directory)

    def _skipped_files(
        self, repository: Repository, taken: Snapshot, largest: int, patience: float
    ) -> Iterator[Skipped]:
        """Yield skipped files, inner repositories with a digest of their content, and changed submodules."""
        remaining = _MOST_INSIDE
        for file in taken.skipped:
            if file.why == NESTED and remaining:
                remaining -= 1
                yield replace(
                    file, why=f"{NESTED} ({self._looked_inside(repository, file.path, largest, patience)[0]})"
                )
            else:
                yield file
        for path in _submodules(repository)[:remaining]:
            state, is_dirty = self._looked_inside(repository, path, largest, patience)
            if is_dirty:
                yield Skipped(path, f"changes inside the submodule ({state})")

    def _looked_inside(self, repository: Repository, path: str, largest: int, patience: float) -> tuple[str, bool]:
        """Return a digest of an inner repository, and whether it differs from its checked-out commit."""
        from hashlib import sha256  # loads OpenSSL, which few snapshots need

        name = name_of(path)
        inner = find(os.path.join(repository.root, os.fsdecode(name)))
        if inner is None or inner.trouble:
            return "it cannot be read", inner is not None
        key = sha256(name).hexdigest()[:16]
        first = self._first.inside.get(key) if self._first else None
        store = Store(os.path.join(self.directory, "inside", key), reading=first)
        try:
            taken = store.take(inner, largest=largest, patience=patience)
        except (GitError, OSError):
            return "it cannot be read", True
        if store.reading:
            self._inside[key] = store.reading
        whys = "".join(
            f"{file.path}\0{file.why}\0{file.size}\0{file.mtime_ns}\0{file.ctime_ns}\0" for file in taken.skipped
        )
        content = sha256(f"{inner.head}{taken.tree}{whys}".encode()).hexdigest()
        return content[:10], bool(taken.skipped) or taken.tree != inner.tree

    def git(self, repository: Repository, *, patience: float = PATIENCE_S, alternates: Sequence[str] = ()) -> Git:
        """Return git for comparing and merging, with the objects of the store, the repository and `alternates`. Raises
        GitError and OSError.

        It does not read the working tree, so the settings of this store's last snapshot of the repository apply.
        """
        with self._alone():
            settings = self._prepare(repository, self.reading if self._read == repository.root else None)
        return self._git(repository, settings, self.index, patience, alternates=alternates)

    @contextmanager
    def scratch(self, repository: Repository, *, patience: float = PATIENCE_S) -> Generator[Git]:
        """Yield git with its own empty index, for building trees. Raises GitError and OSError."""
        with self._alone():
            settings = self._prepare(repository)
        index = os.path.join(self.directory, f"index.{os.urandom(6).hex()}")
        try:
            yield self._git(repository, settings, index, patience)
        finally:
            files.remove(index)
            files.remove(f"{index}.lock")

    def give(self, repository: Repository, objects: Iterable[str]) -> None:
        """Copy commits or trees of the store, with their contents, to the repository's objects.

        A commit with the prefix `^` is left out with its ancestors, so that history is not traversed. Raises GitError
        and OSError.
        """
        revisions = "".join(f"{name}\n" for name in objects).encode()
        git = self.git(repository)
        pack = git.run(
            "pack-objects", "--revs", "--stdout", "--local", "--quiet", "--delta-base-offset", input=revisions
        )
        repository.git.run("unpack-objects", "-q", input=pack)

    def write(self, repository: Repository, now: str, wanted: str, *, patience: float = WRITING_S) -> None:
        """Write a tree into the working tree, whose snapshot is `now`; the user's index stays unchanged.

        Raises InTheWay, before writing anything, if a file has changed or conflicts. Raises GitError and OSError.
        """
        with self._alone():
            settings = self._prepare(repository)
            git = self._git(repository, settings, self.index, patience)
            check_unchanged(git, repository.root, now, self._taken(repository, settings, LARGE, patience).tree)
            check_room(git, repository.root, now, wanted)
            index = f"{self.index}.write"
            shutil.copy2(self.index, index)
            try:
                write_files(self._git(repository, settings, index, patience), repository.root, now, wanted)
                files.rename(index, self.index)
            finally:
                files.remove(index)
                files.remove(f"{index}.lock")

    def remove(self) -> None:
        """Remove as much of the store as permissions allow; if killed here, no partial store remains."""
        gone = f"{self.directory}{_GONE}"
        files.remove_tree(gone)
        try:
            files.rename(self.directory, gone)
        except FileNotFoundError:
            return
        except OSError:
            gone = self.directory
        files.remove_tree(gone)

    def _git(
        self,
        repository: Repository,
        settings: Sequence[Setting],
        index: str,
        patience: float,
        *,
        into_repository: bool = False,
        alternates: Sequence[str] = (),
    ) -> Git:
        more: list[Setting] = [*settings]
        if into_repository:
            more.append(("lfs.storage", os.path.join(repository.common_dir, "lfs")))
        else:
            more.append(("core.sharedRepository", "0600"))  # subdeck's files are private, regardless of the umask
        return Git(
            repository.root,
            git_dir=self.directory,
            work_tree=repository.root,
            index=index,
            objects=repository.objects if into_repository else None,
            alternates=alternates,
            settings=more,
            is_own=True,
            patience=patience,
        )

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Lock the store, and remove git locks in it: they are stale."""
        files.make_private_directory(self.directory)
        lock = files.open_lock(os.path.join(self.directory, "store.lock"))
        try:
            files.lock(lock)
            for name in ("index.lock", "index.base.lock", "index.write", "index.write.lock"):
                files.remove(os.path.join(self.directory, name))
            yield
        finally:
            os.close(lock)

    def _prepare(self, repository: Repository, reading: Reading | None = None) -> list[Setting]:
        """Make the store a valid git repository; return its settings, from the repository without a `reading`.

        Raises GitError if the repository cannot be used.
        """
        if repository.trouble:
            raise GitError(repository.trouble, where=repository.root)
        for name in _READ:
            path = os.path.join(repository.root, name)
            if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
                raise GitError("git would block on it: not a regular file", where=path)
        for name in ("objects/info", "refs", "info"):
            files.make_private_directory(os.path.join(self.directory, name))
        reading = self._first or reading or read_settings.read(repository)
        self.reading, self._read = reading, repository.root
        is_other = repository.object_format != "sha1"
        lines = ["[core]", f"\trepositoryformatversion = {int(is_other)}", "\tbare = false"]
        if is_other:
            lines += ["[extensions]", f"\tobjectFormat = {repository.object_format}"]
        self._write("config", "\n".join([*lines, ""]).encode())
        self._write("HEAD", f"{repository.head or 'ref: refs/heads/none'}\n".encode())
        self._write("objects/info/alternates", os.fsencode(quoted(repository.objects)) + b"\n")
        for name in read_settings.INFO:
            content = reading.info.get(name, b"")
            if name == "exclude":
                content += self._hidden(repository.root)
            self._write(f"info/{name}", content)
        settings = [
            *(read_settings.certain(reading) if self._first else reading.settings),
            ("core.untrackedCache", "true"),
            ("core.preloadIndex", "true"),
            ("core.fsync", "none"),
            ("core.bigFileThreshold", str(LARGE)),
            ("index.threads", "0"),
            ("feature.manyFiles", "false"),
        ]
        for key in read_settings.LISTS:
            self._write(key, reading.lists.get(key, b""))
            settings.append((key, os.path.join(self.directory, key)))
        return settings

    def _hidden(self, root: str) -> bytes:
        """Return exclude lines for subdeck's own directories."""
        lines = b""
        for directory in self._aside:
            path = os.path.relpath(os.path.realpath(directory), root)
            if not path.startswith(os.pardir):
                lines += b"\n/" + re.sub(rb"([\\*?\[\] !#])", rb"\\\1", os.fsencode(path)) + b"/\n"
        return lines

    def _write(self, name: str, content: bytes) -> None:
        """Write a file of the store if its content differs: git depends on its time."""
        path = os.path.join(self.directory, name)
        if not os.path.exists(path) or files.content(path) != content:
            files.write_whole(path, content)


def _make_private(index: str) -> None:
    """Make an index private to its owner: git creates it with the process's umask."""
    try:
        os.chmod(index, 0o600)
    except FileNotFoundError:
        pass


def _submodules(repository: Repository) -> list[str]:
    """Return the paths of existing submodules, as listed in the working tree."""
    listing = os.path.join(repository.root, ".gitmodules")
    if not os.path.isfile(listing) or os.path.islink(listing):
        return []
    asked = Git("/", is_own=True).ask("config", "--file", listing, "-z", "--get-regexp", r"^submodule\..*\.path$")
    paths = {line.partition(b"\n")[2] for line in asked.output.split(b"\0")}
    root = os.fsencode(repository.root)
    return sorted(
        worded(path)
        for path in paths
        if path and os.path.realpath(full := os.path.join(root, path)) == full and full.startswith(root + b"/")
        if os.path.lexists(os.path.join(full, b".git"))
    )
