"""`events.jsonl` as its wrapper writes it: it knows what it has written, and notices that something else did.

What a reader cannot do without, requests and decisions above all, is kept in memory, and written again into a file of
its own where the former one was spoiled.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable

from .. import paths
from ..run.mark import new_hash
from ..run.restoring import moved_aside
from ..system import files
from ..system.directory import opened
from .appended_file import AppendedFile

MOST_KEPT = 4 * 1024 * 1024
"""Bytes of events that are kept; beyond that the oldest are forgotten."""
MOST_COMPARED = 16 * 1024 * 1024
"""Bytes of a file that is read again where only its time says that it was written to."""


class EventFile(AppendedFile):
    def __init__(self, run_dir: str, note_trouble: Callable[[str, OSError], None], cap: int) -> None:
        self._run_dir = run_dir
        self._size = 0
        self._digest = new_hash(digest_size=16)
        self._changed = 0
        """When it was last written to by this process, as its file system says."""
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        before = files.content(os.path.join(run_dir, paths.EVENTS))  # that it waits in its queue
        self._digest.update(before)
        self._size = len(before)
        super().__init__(run_dir, paths.EVENTS, note_trouble, cap, notice=b"")
        for line in before.splitlines(keepends=True):
            self.keep(line)

    def keep(self, line: bytes) -> None:
        """Write an event again if the file has to be made anew."""
        self._kept.append(line)
        self._kept_bytes += len(line)
        while self._kept_bytes > MOST_KEPT and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.popleft())

    def restore(self) -> str:
        """Make the file anew where something else wrote to it, removed or replaced it; return a sentence about that.

        Empty where it is as it should be, or where that cannot be told or done now.
        """
        self.try_again()
        try:
            if self._is_closed or not self._is_spoiled():
                return ""
            with opened(self._run_dir) as directory:
                said = moved_aside(directory, paths.EVENTS)
        except OSError:
            return ""
        self._let_go()
        self._size, self._digest = 0, new_hash(digest_size=16)
        self._write(b"".join(self._kept) + self._held)
        return said

    def _write(self, content: bytes) -> None:
        super()._write(content)
        written = content[: len(content) - len(self._held)]
        self._size += len(written)
        self._digest.update(written)
        if self._descriptor >= 0:
            self._changed = os.fstat(self._descriptor).st_mtime_ns

    def _is_spoiled(self) -> bool:
        """Return whether the file is another one, or holds something else. Raises OSError."""
        if self._descriptor < 0:
            with opened(self._run_dir) as directory:
                return directory.has(paths.EVENTS) and not stat.S_ISREG(directory.status(paths.EVENTS).st_mode)
        own = os.fstat(self._descriptor)
        try:
            with opened(self._run_dir) as directory:
                if not os.path.samestat(directory.status(paths.EVENTS), own):
                    return True
        except FileNotFoundError:
            return True
        if own.st_size != self._size:
            return True
        if own.st_mtime_ns == self._changed or own.st_size > MOST_COMPARED:
            return False
        there = new_hash(digest_size=16)
        there.update(files.read(self._path))
        self._changed = own.st_mtime_ns
        return there.digest() != self._digest.digest()
