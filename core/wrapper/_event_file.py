"""The growing files of a run, on the wrapper's side.

Essential events, above all requests and decisions, are kept in memory, and written again to a new file if the former
one was damaged.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Callable

from .. import paths
from ..run.repair import moved_aside
from ..run.signature import new_hash
from ..system import files
from ..system.directory import opened

AGAIN_S = 1.0
"""Seconds before a refused write is tried again."""
MOST_HELD = 1024 * 1024
"""Bytes of a file that are held until then."""
_CAP_REACHED = b"[subdeck: the rest is left out, the log has reached its cap]\n"


class AppendedFile:
    """An append-only file, one write per piece. Refused pieces are held and retried with later ones; `note_trouble` is
    called once data is certainly missing.
    """

    def __init__(
        self,
        run_dir: str,
        name: str,
        note_trouble: Callable[[str, OSError], None],
        cap: int,
        notice: bytes = _CAP_REACHED,
    ) -> None:
        self._name = name
        self._path = os.path.join(run_dir, name)
        self._note_trouble = note_trouble
        self._left = cap
        """Bytes that still fit; below 0 once a piece did not."""
        self._notice = notice
        """Written in place of the first missing piece."""
        self._held = b""
        """Bytes that the disk has not taken yet."""
        self._refusal: OSError | None = None
        """The first error for the held bytes."""
        self._again_at = 0.0
        self._descriptor = -1
        self._is_closed = False
        self._write(b"")

    @property
    def is_full(self) -> bool:
        """Whether a piece was left out, as every further one is."""
        return self._left < 0

    def append(self, content: bytes) -> None:
        """Write a whole piece; drop one that exceeds the cap, and everything after it."""
        if self.is_full:
            return
        self._left -= len(content)
        self.append_end(self._notice if self.is_full else content)

    def append_end(self, content: bytes) -> None:
        """Write a piece despite the cap: the few at the end of a run."""
        if self._is_closed:
            return
        if self._refusal is None:
            self._write(content)
            return
        self._held += content
        if time.monotonic() >= self._again_at:
            self._write(self._held)
        if len(self._held) > MOST_HELD:
            self._give_up()

    def try_again(self) -> None:
        """Retry a refused write once it is due. The next piece, which would retry it, may not come for a long time."""
        if self._refusal and not self._is_closed and time.monotonic() >= self._again_at:
            self._write(self._held)

    def settle(self) -> None:
        """Try the held bytes for the last time; if the disk still refuses, drop them and all later ones."""
        if self._refusal and not self._is_closed:
            self._write(self._held)
            if self._refusal:
                self._give_up()

    def close(self) -> None:
        self.settle()
        self._give_up()

    def _write(self, content: bytes) -> None:
        """Write as much as the disk takes, and hold the rest."""
        rest = memoryview(content)
        try:
            if self._descriptor < 0:
                self._descriptor = files.open_private(self._path, os.O_WRONLY | os.O_APPEND)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            self._refusal = None
        except OSError as error:
            self._refusal = self._refusal or error
            self._again_at = time.monotonic() + AGAIN_S
        self._held = bytes(rest)

    def _give_up(self) -> None:
        if self._refusal and not self._is_closed:
            self._note_trouble(self._name, self._refusal)
        self._is_closed = True
        self._held = b""
        self._let_go()

    def _let_go(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


# --- `events.jsonl` --------------------------------------------------------------------------------------------------

MOST_KEPT = 4 * 1024 * 1024
"""Bytes of events to keep; beyond that the oldest are dropped."""
MOST_COMPARED = 16 * 1024 * 1024
"""Bytes of a file that is compared in full if only its time shows a write."""


class EventFile(AppendedFile):
    def __init__(self, run_dir: str, note_trouble: Callable[[str, OSError], None], cap: int) -> None:
        self._run_dir = run_dir
        self._size = 0
        self._digest = new_hash(digest_size=16)
        self._changed = 0
        """When this process last wrote to it, in the file system's time."""
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        before = files.content(os.path.join(run_dir, paths.EVENTS))  # from waiting in its queue
        self._digest.update(before)
        self._size = len(before)
        super().__init__(run_dir, paths.EVENTS, note_trouble, cap, notice=b"")
        for line in before.splitlines(keepends=True):
            self.keep(line)

    def keep(self, line: bytes) -> None:
        """Keep an event, for when the file is created again."""
        self._kept.append(line)
        self._kept_bytes += len(line)
        while self._kept_bytes > MOST_KEPT and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.popleft())

    def restore(self) -> str:
        """Recreate the file if another process wrote to it, removed or replaced it; return a sentence about that.

        Empty if it is unchanged, or if it cannot be checked or recreated now.
        """
        self.try_again()
        try:
            if self._is_closed or not self._is_spoiled():
                return ""
            with opened(self._run_dir) as directory:
                sentence = moved_aside(directory, paths.EVENTS)
        except OSError:
            return ""
        self._let_go()
        self._size, self._digest = 0, new_hash(digest_size=16)
        self._write(b"".join(self._kept) + self._held)
        return sentence

    def _write(self, content: bytes) -> None:
        super()._write(content)
        written = content[: len(content) - len(self._held)]
        self._size += len(written)
        self._digest.update(written)
        if self._descriptor >= 0:
            self._changed = os.fstat(self._descriptor).st_mtime_ns

    def _is_spoiled(self) -> bool:
        """Whether the file was replaced, or has other content. Raises OSError."""
        if self._descriptor < 0:
            with opened(self._run_dir) as directory:
                return directory.has(paths.EVENTS) and not stat.S_ISREG(directory.status(paths.EVENTS).st_mode)
        status = os.fstat(self._descriptor)
        try:
            with opened(self._run_dir) as directory:
                if not os.path.samestat(directory.status(paths.EVENTS), status):
                    return True
        except FileNotFoundError:
            return True
        if status.st_size != self._size:
            return True
        if status.st_mtime_ns == self._changed or status.st_size > MOST_COMPARED:
            return False
        there = new_hash(digest_size=16)
        there.update(files.read(self._path))
        self._changed = status.st_mtime_ns
        return there.digest() != self._digest.digest()
