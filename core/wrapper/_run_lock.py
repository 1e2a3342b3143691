"""The wrapper's hold on its run: a shared lock that shows everyone that the run is alive."""

from __future__ import annotations

import os

from .. import paths
from ..run import proven, second_copy
from ..run.signature import Verifier
from ..system import files


class RunHold:
    """Taken once, by one wrapper; it lasts until it is closed, or the process ends."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._path = os.path.join(run_dir, paths.LOCK)
        self._locks: list[int] = []
        self._file: tuple[int, int] | None = None
        """Device and inode of the locked file."""
        self._copy = -1
        """Holds the lock of the second copy."""
        self.trouble = ""
        """Why there is no second copy of the run's records; empty if there is one, or none is needed."""

    def take(self) -> bool:
        """Take the run's lock, created again if it was removed. False if the run is gone, or another process has
        finished or taken it.
        """
        try:
            lock = files.open_lock(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        self._locks.append(lock)
        files.lock(lock, shared=True)
        self._file = _identity(os.fstat(lock))
        if proven.has_result(self._run_dir) or not self._is_first(lock):
            return False
        self._make_copy()
        return True

    def renew(self) -> None:
        """Lock the file again if it was removed or replaced: otherwise the run would seem to have no holder."""
        if self._file is None or self._is_held() or not os.path.isdir(self._run_dir):
            return
        try:
            lock = files.open_lock(self._path)
            self._locks.append(lock)
            if files.try_lock(lock, shared=True):
                if self._copy >= 0:
                    second_copy.note_tampering(self._run_dir, f"{paths.LOCK} was removed or replaced during the run")
                self._file = _identity(os.fstat(lock))
                self._note_lock(lock)
        except OSError:
            return  # the next check tries again

    def close(self) -> None:
        self._file = None
        while self._locks:
            os.close(self._locks.pop())
        if self._copy >= 0:
            os.close(self._copy)
            self._copy = -1

    def _make_copy(self) -> None:
        """Make the second copy of a run whose record requires signatures and has this user's."""
        meta = files.content(os.path.join(self._run_dir, paths.META))
        if not (proven.is_flagged(meta) and Verifier().is_record_signed(os.path.basename(self._run_dir), meta)):
            return
        try:
            self._copy = second_copy.make(self._run_dir, meta)
            self._note_lock(self._locks[-1])
        except OSError as error:
            where = second_copy.directory_of(self._run_dir)
            self.trouble = (
                f"cannot write the second copy of this run's records to {where}: {error.strerror}; its "
                "agent could gain control of the run by writing to the run's directory"
            )

    def _note_lock(self, lock: int) -> None:
        if self._copy >= 0:
            second_copy.note_lock(self._copy, os.fstat(lock))

    def _is_held(self) -> bool:
        try:
            return _identity(os.stat(self._path, follow_symlinks=False)) == self._file
        except FileNotFoundError:
            return False
        except OSError:
            return True  # it may well be there

    def _is_first(self, lock: int) -> bool:
        """Leave a wrapper's mark; return whether it is the first: tmux may carry out a repeated request twice.

        The mark outlives a dead wrapper; if the disk refuses it, the kernel still shows a live one.
        """
        if not files.claim(lock):
            return False
        try:
            os.close(files.open_private(os.path.join(self._run_dir, paths.TAKEN), os.O_EXCL))
        except FileExistsError:
            return False
        except OSError:
            return True  # a full disk must not keep a run from starting
        return True


def _identity(status: os.stat_result) -> tuple[int, int]:
    return (status.st_dev, status.st_ino)
