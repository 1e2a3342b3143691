"""What git ignores and a run needs all the same, brought into its worktree: copied, sharing blocks where the file
system can, or linked. No link is followed on the way, neither in what is read nor where it is written.
"""

from __future__ import annotations

import errno
import fcntl
import fnmatch
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator

from ..git.program import Git
from ..text.plain import one_line

_FICLONE = 0x40049409
_CHUNK = 1 << 20
_CANNOT = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EXDEV, errno.ENOSYS, errno.EPERM})


class Copied:
    """What was brought along."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.linked: list[str] = []
        self.files = 0
        self.size = 0
        self.is_shared = False
        """Whether it takes no room of its own, as far as it is not changed."""
        self.troubles: list[str] = []


class Copying:
    """From a working tree into a worktree of it."""

    def __init__(self, root: str, tree: str) -> None:
        self._root = root
        self._tree = os.path.realpath(tree)
        self._copied = Copied()
        self._clones = True

    def bring(self, copy: Iterable[str], link: Iterable[str]) -> Copied:
        """Bring along what is ignored and matches a list: a name anywhere, or a path from the root, with `*` and `?`.

        Raises GitError; what cannot be read or written is among the troubles.
        """
        ignored = self._ignored()
        linked = dict.fromkeys(_matching(ignored, link, self._root))
        copied = dict.fromkeys(_matching(ignored, copy, self._root))
        for name in linked:
            self._try(name, self._link)
        for name in copied:
            if not any(name == one or name.startswith(f"{one}/") for one in linked):
                self._try(name, self._copy)
        return self._copied

    def _ignored(self) -> list[str]:
        """Return what git ignores: files, and directories of which it ignores all."""
        found = Git(self._root).lines("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        names = (os.fsdecode(name).rstrip("/") for name in found)
        return [name for name in names if name != ".pi" and not name.startswith(".pi/")]  # runs belong to one place

    def _try(self, name: str, bring: Callable[[str, str], None]) -> None:
        try:
            target = self._target(name)
            if target is not None:
                bring(name, target)
        except OSError as error:
            self._trouble(name, error.strerror or str(error))

    def _trouble(self, name: str, why: str) -> None:
        self._copied.troubles.append(f"{one_line(name, 120)} was not copied or linked: {why}")

    def _target(self, name: str) -> str | None:
        """Return where it goes; None where something leads out of the worktree."""
        target = os.path.join(self._tree, name)
        above = os.path.dirname(target)
        if os.path.realpath(above) != above:
            self._trouble(name, "its path is a link out of the worktree")
            return None
        os.makedirs(above, exist_ok=True)
        return target

    def _link(self, name: str, target: str) -> None:
        if os.path.lexists(target):
            return
        os.symlink(os.path.join(self._root, name), target)
        if Git(self._tree).lines("ls-files", "--others", "--exclude-standard", "-z", "--", name):
            os.unlink(target)  # it would count as a change, and be taken over as one
            self._trouble(
                name, 'it is ignored only as a directory: remove the "/" at the end of its ignore rule to link it'
            )
            return
        self._copied.linked.append(name)

    def _copy(self, name: str, target: str) -> None:
        source = os.path.join(self._root, name)
        status = os.lstat(source)
        if stat.S_ISLNK(status.st_mode) and not self._stays_inside(source):
            self._trouble(name, "it is a link out of the project (use worktree_link for links)")
            return
        if not (stat.S_ISLNK(status.st_mode) or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            self._trouble(name, "not a regular file")
            return
        was_there, files = os.path.lexists(target), self._copied.files
        self._entry(source, target, status)
        if self._copied.files > files or (not was_there and os.path.lexists(target)):
            self._copied.names.append(name)

    def _entry(self, source: str, target: str, status: os.stat_result) -> None:
        """Copy one entry, a directory with all that is below: what is there already stays, and what cannot be copied
        keeps nothing else from it.
        """
        is_merged = stat.S_ISDIR(status.st_mode) and _is_directory(target)  # part of it was linked or copied before
        if os.path.lexists(target) and not is_merged:
            return
        try:
            if stat.S_ISLNK(status.st_mode):
                os.symlink(self._own(os.readlink(source)), target)
            elif stat.S_ISREG(status.st_mode):
                self._file(source, target, status)
            elif stat.S_ISDIR(status.st_mode):
                if not is_merged:
                    os.mkdir(target, 0o700)
                with os.scandir(source) as entries:
                    for entry in entries:
                        below = os.path.join(target, entry.name)
                        self._entry(entry.path, below, entry.stat(follow_symlinks=False))
                os.chmod(target, stat.S_IMODE(status.st_mode) | 0o700)
        except OSError as error:
            self._trouble(os.path.relpath(source, self._root), error.strerror or str(error))

    def _own(self, leads_to: str) -> str:
        """Return where a copied link leads: into the copy where it names the project's files by their whole path."""
        return self._tree + leads_to[len(self._root) :] if f"{leads_to}/".startswith(f"{self._root}/") else leads_to

    def _stays_inside(self, source: str) -> bool:
        return f"{os.path.realpath(source)}/".startswith(f"{os.path.realpath(self._root)}/")

    def _file(self, source: str, target: str, status: os.stat_result) -> None:
        reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(reader).st_mode):
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            writer = os.open(target, flags, stat.S_IMODE(status.st_mode) | 0o200)
            try:
                self._content(reader, writer)
                os.fchmod(writer, stat.S_IMODE(status.st_mode))
                os.utime(writer, ns=(status.st_atime_ns, status.st_mtime_ns))
            except OSError:
                os.unlink(target)  # a child would take the half for the whole
                raise
            finally:
                os.close(writer)
        finally:
            os.close(reader)
        self._copied.files += 1
        self._copied.size += status.st_size

    def _content(self, reader: int, writer: int) -> None:
        if self._clones:
            try:
                fcntl.ioctl(writer, _FICLONE, reader)
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                self._clones = False
            else:
                self._copied.is_shared = True
                return
        self._copied.is_shared = False
        with open(reader, "rb", closefd=False) as source, open(writer, "wb", closefd=False) as target:
            shutil.copyfileobj(source, target, _CHUNK)


def _matching(ignored: list[str], patterns: Iterable[str], root: str) -> Iterator[str]:
    """Yield what a list names of what is ignored: a name without a slash wherever it is, else a path from the root."""
    for pattern in patterns:
        wanted = os.path.normpath(pattern).strip("/")
        if not wanted or wanted.split("/")[0] in (os.curdir, os.pardir):
            continue
        is_path = "/" in pattern.rstrip("/")
        for name in ignored:
            said = name if is_path else os.path.basename(name)
            if fnmatch.fnmatchcase(said, wanted):
                yield name
            elif (is_path and wanted.startswith(f"{name}/")) and _is_there(root, wanted):
                yield wanted


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_there(root: str, name: str) -> bool:
    """Return whether there is something of that name, and no link on the way to it."""
    path = os.path.join(root, name)
    above = os.path.dirname(path)
    return os.path.lexists(path) and os.path.realpath(above) == os.path.join(
        os.path.realpath(root), os.path.dirname(name)
    )
