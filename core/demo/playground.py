"""A demo's private directory: created, found, entered and removed; a lock in it shows whether the demo is alive."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from .. import paths
from ..errors import SubdeckError

PREFIX = "subdeck-demo-"
_HIDDEN = ".subdeck-demo-"
"""Prefix of its name until it has its lock, so that no search finds it."""
_LOCK = "lock"
_PROJECT = os.path.join("home", "src", "orders")
_MEMORY = "/dev/shm"  # noqa: S108 - a directory is made in it that only this user can enter
_ROOM = 256 * 1024 * 1024
"""Bytes that must be free there: a deck takes a few megabytes, and twenty more each hour."""
READY = b"ready\n"
"""The feeder's output once the deck is ready."""
_ENDING_S = 10.0
"""Seconds for the feeder to end its processes."""
_KEPT = frozenset({
    "COLORTERM", "COLUMNS", "LANG", "LANGUAGE", "LINES", "LOGNAME", "NO_COLOR", "PATH", "SHELL", "TERM", "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE", "TZ", "USER",
})  # fmt: skip
"""Variables that a demo keeps: terminal, language and clock. Any other may lead to the user's data: a home, a key,
settings, a log."""


@contextmanager
def made() -> Generator[str]:
    """Create a demo and yield its directory, which can be entered; at the end, stop its process and remove it.

    Remains of earlier demos are removed first. Raises SubdeckError if the demo cannot be created.
    """
    _remove_dead()
    try:
        directory, lock = _locked()
    except OSError as error:
        raise SubdeckError(
            f"cannot create the demo's directory: {error.strerror}",
            where=_parent_directory(),
            hint="set TMPDIR to a writable directory",
        ) from error
    feeder = None
    try:
        feeder = _start_feeder(directory, lock)
        _wait_until_ready(feeder)
        yield directory
    finally:
        if feeder is not None:
            _end(feeder)
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def running() -> str | None:
    """Return the directory of the last started live demo; None without one."""
    return max((path for path, lock in _demos() if lock is None), key=_made_at, default=None)


def enter(directory: str) -> None:
    """Switch this process and its children to a demo, away from the user's own data."""
    inside = environment(directory)
    os.environ.clear()
    os.environ.update(inside)
    tempfile.tempdir = None  # forget the cached value
    os.chdir(project_of(directory))


def environment(directory: str) -> dict[str, str]:
    """Return the variables of a demo: they keep all reads and writes in its directory."""
    home = os.path.join(directory, "home")
    temporary = os.path.join(directory, "tmp")
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LC_")}
    return kept | {
        paths.DEMO: directory,
        "GIT_CEILING_DIRECTORIES": directory,
        "HOME": home,
        "TMPDIR": temporary,
        "TMUX_TMPDIR": temporary,
        "XDG_CACHE_HOME": os.path.join(home, ".cache"),
        "XDG_CONFIG_HOME": os.path.join(home, ".config"),
        "XDG_DATA_HOME": os.path.join(home, ".local", "share"),
        "XDG_RUNTIME_DIR": temporary,
        "XDG_STATE_HOME": os.path.join(home, ".local", "state"),
    }


def project_of(directory: str) -> str:
    return os.path.join(directory, _PROJECT)


def _parent_directory() -> str:
    """Return the parent directory of demos: in memory, where a thousand small files take a tenth of the time, unless
    the user names another one.
    """
    if not os.environ.get("TMPDIR") and os.access(_MEMORY, os.W_OK | os.X_OK):
        room = os.statvfs(_MEMORY)
        if room.f_bavail * room.f_frsize >= _ROOM:
            return _MEMORY
    return tempfile.gettempdir()


def _locked() -> tuple[str, int]:
    """Create the directory; return it with its lock, which is held until the descriptor is closed everywhere."""
    hidden = tempfile.mkdtemp(prefix=_HIDDEN, dir=_parent_directory())
    try:
        for name in (_PROJECT, "tmp"):
            os.makedirs(os.path.join(hidden, name), mode=0o700)
        lock = os.open(os.path.join(hidden, _LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        above, name = os.path.split(hidden)
        directory = os.path.join(os.path.realpath(above), f"{PREFIX}{name.removeprefix(_HIDDEN)}")
        os.rename(hidden, directory)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return directory, lock


def _start_feeder(directory: str, lock: int) -> subprocess.Popen[bytes]:
    command = (sys.executable, "-P", "-E", "-m", "subdeck.core.demo", directory, str(os.getpid()))
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock,),
            env=environment(directory),
            cwd="/",
            start_new_session=True,  # ctrl-C is for the app
        )
    except OSError as error:
        raise SubdeckError(f"cannot start the demo: {error.strerror}", where=sys.executable) from error


def _wait_until_ready(feeder: subprocess.Popen[bytes]) -> None:
    line = b""
    if feeder.stdout is not None:
        with feeder.stdout as pipe:
            line = pipe.readline()
    if line != READY:
        reason = line.decode("utf-8", "replace").strip() or "its process ended"
        raise SubdeckError(f"cannot start the demo: {reason}", hint="check the free space of the temporary directory")


def _end(feeder: subprocess.Popen[bytes]) -> None:
    """Close the feeder's stdin, and wait until it has removed the directory."""
    if feeder.stdin is not None:
        feeder.stdin.close()
    try:
        feeder.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        feeder.kill()
        feeder.wait()


def _demos() -> Iterator[tuple[str, int | None]]:
    """Yield this user's demos: each with its lock if that was free, which is closed afterwards, or None if the demo is
    alive. Skip anything that is not certainly this user's demo.
    """
    parents = dict.fromkeys(map(os.path.realpath, (tempfile.gettempdir(), _MEMORY)))
    for path in (os.path.join(parent, name) for parent in parents for name in _names(parent)):
        try:
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            lock = _lock_in(directory)
        finally:
            os.close(directory)
        if lock is None:
            continue
        try:
            yield path, lock if _is_free(lock) else None
        finally:
            os.close(lock)


def _names(parent: str) -> list[str]:
    try:
        return [name for name in os.listdir(parent) if name.startswith(PREFIX)]
    except OSError:
        return []


def _lock_in(directory: int) -> int | None:
    """Open the lock of this user's demo; None if the directory is not one."""
    status = os.fstat(directory)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != 0o700:
        return None
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        lock = os.open(_LOCK, flags, dir_fd=directory)
    except OSError:
        return None
    status = os.fstat(lock)
    if status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode):
        return lock
    os.close(lock)
    return None


def _is_free(lock: int) -> bool:
    """Take a lock; return False if its demo is, or may be, alive."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_dead() -> None:
    for path, lock in _demos():
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)


def _made_at(path: str) -> float:
    try:
        return os.stat(os.path.join(path, _LOCK)).st_mtime
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return 0.0  # it is being removed
