"""The stdin of a child that is spoken to: what it is told waits here until it reads, and the wrapper never does."""

from __future__ import annotations

import os
import select

MOST_UNREAD = 64 * 1024 * 1024
"""Bytes that may wait; a child that reads none of so many is told no more."""


class ChildInput:
    def __init__(self, descriptor: int, poller: select.poll) -> None:
        """`descriptor` is the writing end of a pipe, and this one's from now on."""
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        """-1 once it is closed."""
        self._poller = poller
        self._unread = bytearray()
        self._is_last = False
        self._is_watched = False

    def put(self, message: bytes, *, is_last: bool) -> None:
        """Write as much as there is room for, and the rest when there is; close it after the last."""
        self._is_last = is_last
        if len(self._unread) + len(message) <= MOST_UNREAD:
            self._unread += message
        self.go_on()

    def go_on(self) -> None:
        """Write what waits, now that there may be room."""
        if self.descriptor < 0:
            return
        try:
            while self._unread:
                del self._unread[: os.write(self.descriptor, self._unread)]
        except BlockingIOError:
            self._watch()
            return
        except OSError:
            self.close()  # the child has closed its end, or is gone
            return
        self._ignore()
        if self._is_last:
            self.close()

    def close(self) -> None:
        if self.descriptor >= 0:
            self._ignore()
            self._unread.clear()
            os.close(self.descriptor)
            self.descriptor = -1

    def _watch(self) -> None:
        if not self._is_watched:
            self._poller.register(self.descriptor, select.POLLOUT)
            self._is_watched = True

    def _ignore(self) -> None:
        """Have the poller forget it: the end of its reader would be reported again and again."""
        if self._is_watched:
            self._poller.unregister(self.descriptor)
            self._is_watched = False
