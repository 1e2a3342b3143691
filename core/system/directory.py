"""Directories held open while subdeck works in them, so that a checkout cannot redirect a path by a link.

Below `.pi/subagents` of a project every step is taken from a descriptor and none may be a link; a file must be regular,
and is opened without waiting. The path to the project may have links; `.pi` and `.pi/subagents` may be links to inside
the project. Elsewhere links are followed: users may arrange their own files as they like.

Only the standard library's lightest modules: a wrapper that waits in a queue imports this.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HOME = ".pi/subagents"
"""Directory of subdeck's files in a project, below its root."""
_GUARDED = f"/{HOME}/"

_ITSELF = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 50
"""Levels of directories open at a time while their content is removed."""
_QUIET = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NOT_FOR_US = frozenset({errno.ENOENT, errno.EACCES, errno.ELOOP, errno.ENXIO})
"""Errors of opening a file that is missing, may not be read, is a link or a socket."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | _QUIET
_USUAL_BYTES = 32 * 1024
LARGEST = 64 * 1024 * 1024
"""Bytes of a file that is read whole; subdeck writes no larger one."""
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
"""Errors of `link` on FAT and some network file systems."""
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class RefusedError(OSError):
    """The entry may not be opened there; `strerror` says in a clause for the user what it is."""


class Directory:
    """A directory, and all operations on the files in it. Every method that touches the disk raises OSError."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, descriptor: int | None = None) -> None:
        """`descriptor` is held from now on; without one the directory is not guarded, and found by its path."""
        self.path = path
        self._descriptor = descriptor

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def inside(self, name: str) -> Directory:
        """Open a directory in this one."""
        path = f"{self.path}/{name}"
        return Directory(path, None if self._descriptor is None else _step(self._descriptor, name, path))

    def make(self, name: str) -> None:
        """Create a directory that only this user can access. Raises FileExistsError if the name is taken."""
        os.mkdir(self._at(name), 0o700, dir_fd=self._descriptor)

    def open(self, name: str, flags: int, *, mode: int = 0o600, follow: bool = False) -> int:
        """Open a regular file; return its descriptor. Raises RefusedError for anything else of that name.

        With `follow` it may be a link to one: users may keep files that they write by hand anywhere.
        """
        descriptor = self._open(name, flags, mode, follow=follow)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise _refused(f"{self.path}/{name}", mode)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def open_itself(self) -> int:
        """Open the directory for listing or locking it."""
        path = self.path if self._descriptor is None else "."
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._descriptor)

    def status(self, name: str) -> os.stat_result:
        """Return the status of an entry; of a link itself, not of its target."""
        return os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)

    def regain(self, name: str) -> bool:
        """Restore the user's own permissions on a file or directory. Links are not followed. Return whether they were
        missing.
        """
        descriptor = os.open(self._at(name), _ITSELF, dir_fd=self._descriptor)
        try:
            return _regain(descriptor)
        finally:
            os.close(descriptor)

    def has(self, name: str) -> bool:
        """Return whether there is anything of that name."""
        try:
            self.status(name)
        except OSError:
            return False
        return True

    @property
    def is_removed(self) -> bool:
        """Whether it was removed since it was opened; always false if it is not guarded."""
        return self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0

    def names(self) -> list[str]:
        descriptor = self.open_itself()
        try:
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """Return all names with their status, of links themselves; entries removed by now are omitted."""
        entries: list[tuple[str, os.stat_result]] = []
        for name in self.names():
            try:
                entries.append((name, self.status(name)))
            except FileNotFoundError:
                continue
        return entries

    def read(self, name: str) -> bytes:
        """Read a whole regular file; twice as fast as `open`."""
        descriptor = self._open(name, os.O_RDONLY)
        try:
            return _whole(descriptor, self.path, name)
        finally:
            os.close(descriptor)

    def read_inside(self, name: str, *file_names: str) -> tuple[os.stat_result, list[bytes]]:
        """Read files of a directory in this one as `read` does; empty for a file that is missing or may not be read.

        Return the status of that directory, taken before reading, and the contents of the files. Thousands of runs are
        read this way: there is little code above the system calls.
        """
        descriptors = [_step(self._descriptor, self._at(name), f"{self.path}/{name}")]
        try:
            return os.fstat(descriptors[0]), [_content(descriptors, file_name) for file_name in file_names]
        finally:
            _close(descriptors)

    def write_whole(
        self, name: str, content: bytes | Iterable[bytes], *, mode: int = 0o600, durable: bool = False
    ) -> None:
        """Write a file so that readers see the old one or the new one, never a part.

        `mode` is for a new file (less the umask); a replaced one keeps its permissions. `durable` waits until the
        content is on the disk.
        """
        beside = self._write_beside(name, content, mode, durable=durable, is_replaced=True)
        try:
            self.rename(beside, self, name)
        except OSError:
            self.discard(beside)
            raise

    def write_new(
        self, name: str, content: bytes | Iterable[bytes], *, mode: int = 0o600, durable: bool = False
    ) -> None:
        """Write a file that readers see completely or not yet. Raises FileExistsError if it exists."""
        if self.has(name):
            raise self._exists(name)
        beside = self._write_beside(name, content, mode, durable=durable)
        try:
            self.publish(beside, name)
        except BaseException:
            self.discard(beside)
            raise

    def publish(self, beside: str, name: str) -> None:
        """Give a file its final name instead of its temporary one. Raises FileExistsError if that is taken."""
        try:
            self.link(beside, self, name)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # Without links this takes two steps; only the caller's lock keeps other processes out in between.
            if self.has(name):
                raise self._exists(name) from error
            self.rename(beside, self, name)
        else:
            self.discard(beside)

    def remove(self, name: str) -> None:
        """Remove a file, or a link itself."""
        os.unlink(self._at(name), dir_fd=self._descriptor)

    def discard(self, name: str) -> None:
        """Remove a file, if it exists and may be removed."""
        try:
            self.remove(name)
        except OSError:
            return

    def remove_tree(self, name: str) -> None:
        """Remove a directory and its content, or any other entry; what may not be removed stays."""
        try:
            self.remove(name)
        except (IsADirectoryError, PermissionError):  # POSIX specifies the second one for a directory
            self._empty(name)
            _rmdir(self._at(name), self._descriptor)
        except OSError:
            return

    def _empty(self, name: str) -> None:
        """Remove the content of a directory, at any depth; what may not be removed stays."""
        try:
            top = os.open(self._at(name), _LISTED, dir_fd=self._descriptor)
        except OSError:
            return
        try:
            waiting = _remove_below(top, top, 0)
            while waiting:
                waiting += _remove_directory(waiting.pop(), top, top, 1)
        finally:
            os.close(top)

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """Move an entry; a link itself, not its target."""
        os.rename(
            self._at(name), target._at(new_name), src_dir_fd=self._descriptor, dst_dir_fd=target._descriptor
        )  # fmt: skip

    def link(self, name: str, target: Directory, new_name: str) -> None:
        """Give an entry a second name. Raises FileExistsError if that is taken."""
        os.link(
            self._at(name),
            target._at(new_name),
            src_dir_fd=self._descriptor,
            dst_dir_fd=target._descriptor,
            follow_symlinks=False,
        )

    def touch(self, name: str) -> None:
        """Set its time of last change to now."""
        os.utime(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if self._descriptor is None else name

    def _open(self, name: str, flags: int, mode: int = 0o600, *, follow: bool = False) -> int:
        extra_flags = _QUIET if follow or self._descriptor is None else _QUIET | os.O_NOFOLLOW
        try:
            return os.open(self._at(name), flags | extra_flags, mode, dir_fd=self._descriptor)
        except OSError as error:
            raise _explained(error, self._descriptor, name, f"{self.path}/{name}") from None

    def _write_beside(
        self, name: str, content: bytes | Iterable[bytes], mode: int, *, durable: bool, is_replaced: bool = False
    ) -> str:
        """Write a hidden file that will get the name `name`, with the permissions of that file if it `is_replaced`;
        return the hidden name.
        """
        beside = f".subdeck.{os.urandom(6).hex()}"
        descriptor = self.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=mode)
        try:
            with open(descriptor, "wb") as file:
                file.writelines((content,) if isinstance(content, bytes) else content)
                file.flush()
                former = self.status(name).st_mode if is_replaced and self.has(name) else 0
                if stat.S_ISREG(former):
                    os.fchmod(descriptor, stat.S_IMODE(former))
                if durable:
                    os.fsync(descriptor)
        except BaseException as error:
            self.discard(beside)
            if isinstance(error, OSError) and error.filename is None:  # an error of a write does not name the file
                error.filename = f"{self.path}/{name}"
            raise
        return beside

    def _exists(self, name: str) -> FileExistsError:
        return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), f"{self.path}/{name}")


def _remove_below(descriptor: int, top: int, depth: int) -> list[str]:
    """Remove the content of a directory. Directories too deep to keep all their parents open are moved into `top`;
    return their new names.
    """
    moved: list[str] = []
    try:
        names = os.listdir(descriptor)
    except OSError:
        return moved
    for name in names:
        try:
            os.unlink(name, dir_fd=descriptor)
        except (IsADirectoryError, PermissionError):
            moved += _remove_directory(name, descriptor, top, depth + 1)
        except OSError:
            continue
    return moved


def _remove_directory(name: str, parent: int, top: int, depth: int) -> list[str]:
    if depth > _DEEPEST:
        new_name = os.urandom(12).hex()
        try:
            os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=top)
        except OSError:
            return []
        return [new_name]
    try:
        descriptor = os.open(name, _LISTED, dir_fd=parent)
    except OSError:
        _rmdir(name, parent)  # an empty one that may not be listed
        return []
    try:
        moved = _remove_below(descriptor, top, depth)
    finally:
        os.close(descriptor)
    _rmdir(name, parent)
    return moved


def _rmdir(name: str, parent: int | None) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return


def _content(descriptors: list[int], name: str) -> bytes:
    """Read a file in the first of these directories; its descriptor is added to them."""
    try:
        descriptor = os.open(name, _READ, dir_fd=descriptors[0])
    except OSError as error:
        if error.errno in _NOT_FOR_US:
            return b""
        raise
    descriptors.append(descriptor)
    try:
        return _whole(descriptor, "", name)
    except RefusedError:
        return b""


def _close(descriptors: list[int]) -> None:
    """Close descriptors that were opened in a row: with one call if no other thread got a number in between."""
    first, end = descriptors[0], descriptors[0] + len(descriptors)
    if descriptors == list(range(first, end)):
        os.closerange(first, end)
    else:
        for descriptor in descriptors:
            os.close(descriptor)


def _whole(descriptor: int, directory: str, name: str) -> bytes:
    try:
        content = os.read(descriptor, _USUAL_BYTES)
    except IsADirectoryError:
        raise _refused(f"{directory}/{name}", stat.S_IFDIR) from None
    if 0 < len(content) < _USUAL_BYTES:
        return content  # the whole file
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _refused(f"{directory}/{name}", status.st_mode)
    if status.st_size > LARGEST:
        raise RefusedError(errno.EFBIG, f"{name} is larger than {LARGEST >> 20} MB", f"{directory}/{name}")
    if content:
        with open(descriptor, "rb", closefd=False) as file:
            content += file.read(LARGEST)
    return content


def opened(path: str, *, make: bool = False) -> Directory:
    """Open a directory; with `make` it is created if missing, and so are its parents.

    Raises RefusedError if the guarded part of its path has a link or anything else but directories.
    """
    root, mark, below = f"{path}/".rpartition(_GUARDED)
    if not mark:
        if make:
            _make_all(path or ".")
        return Directory(path or ".")
    descriptor = _open_home(root, make)
    path = f"{root}{_GUARDED[:-1]}"
    for name in filter(None, below.split("/")):
        path = f"{path}/{name}"
        descriptor = _next(descriptor, name, path, make)
    return Directory(path, descriptor)


def regain_way(path: str) -> bool:
    """Restore the user's permissions on a directory below `.pi/subagents`, and on its parents from `.pi` on.

    Links and other users' directories stay as they are. Return whether permissions were missing. Raises OSError.
    """
    root, mark, below = f"{path}/".rpartition(_GUARDED)
    if not mark:
        return False
    was_out = False
    descriptor = os.open(root or "/", _STEP & ~os.O_NOFOLLOW)
    try:
        for name in filter(None, f"{HOME}/{below}".split("/")):
            before, descriptor = descriptor, os.open(name, _STEP, dir_fd=descriptor)
            os.close(before)
            was_out |= _regain(descriptor)
    finally:
        os.close(descriptor)
    return was_out


def _regain(descriptor: int) -> bool:
    """Restore the usual permissions of an open file or directory of the user. Return whether any were missing."""
    status = os.fstat(descriptor)
    least = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600 if stat.S_ISREG(status.st_mode) else 0
    if status.st_mode & least == least or status.st_uid != os.geteuid():
        return False
    os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(status.st_mode) | least)  # the only way with O_PATH
    return True


def _open_home(root: str, make: bool) -> int:
    """Open `.pi/subagents` of a project by descriptor; either part may be a link to inside the project."""
    pi, home = f"{root}/.pi", f"{root}{_GUARDED[:-1]}"
    if make:
        _make_all(root or "/")
    try:
        return _next(_step(None, pi, pi, make, 0o755), "subagents", home, make)
    except RefusedError as refusal:
        if refusal.errno != errno.ELOOP:
            raise
    real_root, real = os.path.realpath(root or "/"), os.path.realpath(home)
    if os.path.commonpath((real_root, real)) != real_root:
        link = pi if os.path.islink(pi) and not _is_inside(real_root, os.path.realpath(pi)) else home
        what = f"{link[len(root) + 1 :]} is a symbolic link out of the project; subdeck does not follow such links"
        raise RefusedError(errno.ELOOP, what, link)
    path, descriptor = real_root, os.open(real_root, _STEP & ~os.O_NOFOLLOW)
    for name in os.path.relpath(real, real_root).split("/"):
        path = f"{path}/{name}"
        descriptor = _next(descriptor, name, path, make)
    return descriptor


def _is_inside(root: str, path: str) -> bool:
    return os.path.commonpath((root, path)) == root


def _next(descriptor: int, name: str, path: str, make: bool) -> int:
    """Open the next directory, and close the one before it."""
    try:
        return _step(descriptor, name, path, make)
    finally:
        os.close(descriptor)


def _step(descriptor: int | None, name: str, path: str, make: bool = False, mode: int = 0o700) -> int:
    if name == "..":
        raise RefusedError(errno.EINVAL, "its path contains ..", path)
    try:
        try:
            return os.open(name, _STEP, dir_fd=descriptor)
        except FileNotFoundError:
            if not make:
                raise
        try:
            os.mkdir(name, mode, dir_fd=descriptor)
        except FileExistsError:
            pass  # another process has just made it
        return os.open(name, _STEP, dir_fd=descriptor)
    except OSError as error:
        raise _explained(error, descriptor, name, path, wants_directory=True) from None


def _make_all(path: str) -> None:
    """Create a directory that only this user can access, and its missing parents."""
    above = os.path.dirname(path.rstrip("/")) or "."
    if path.strip("/") and not os.path.exists(above):
        _make_all(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def _explained(
    error: OSError, descriptor: int | None, name: str, path: str, *, wants_directory: bool = False
) -> OSError:
    """Return the error with the whole path; a refusal if the entry is of another kind than expected."""
    error.filename = path
    if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR):
        return error
    try:
        mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
    except OSError:
        return error
    is_expected = stat.S_ISDIR if wants_directory else stat.S_ISREG
    return error if is_expected(mode) else _refused(path, mode, "directory" if wants_directory else "regular file")


def _refused(path: str, mode: int, expected: str = "regular file") -> RefusedError:
    _, mark, below = f"{path}/".rpartition(_GUARDED)
    shown = (below or HOME).rstrip("/") if mark else ".pi" if expected == "directory" else "it"
    if stat.S_ISLNK(mode):
        return RefusedError(errno.ELOOP, f"{shown} is a symbolic link; subdeck does not open links here", path)
    if stat.S_ISDIR(mode):
        return RefusedError(errno.EISDIR, f"{shown} is a directory, not a file", path)
    kind = next((word for is_kind, word in _KINDS if is_kind(mode)), "a device")
    number = errno.ENOTDIR if expected == "directory" else errno.EINVAL
    return RefusedError(number, f"{shown} is {kind}, not a {expected}", path)
