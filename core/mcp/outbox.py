"""What is on its way to the client: written in order, in a thread, so that nobody waits for a slow reader."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

from ..system.log import log_fault
from .protocol import Fields, RequestId, encode, notification

KEEP_ALIVE_S = 20.0
"""After this long without news the last progress is sent again: some clients give up after 60 s of silence."""

PIECE = 64 * 1024
"""Bytes written at once: as much as a pipe holds, so that a reader who reads is told from one who does not."""

PATIENCE_S = 1.0
"""How long, at the end, a reader may take for one piece. Clients that close our stdin give us two seconds to end."""


class Relay:
    """The progress of one call; of what is reported faster than the client reads, it gets the latest."""

    def __init__(self, outbox: Outbox, token: RequestId) -> None:
        self._outbox = outbox
        self._token = token
        self._sent = 0
        self.latest = ""
        self.is_fresh = False
        """Whether something was reported since progress was looked through."""

    def report(self, text: str) -> None:
        """Send this next; never blocks, whether or not the client reads."""
        self._outbox.send_progress(self, text)

    def drop(self) -> None:
        """Send nothing more of it."""
        self._outbox.end_progress(self, at_once=True)

    def line(self) -> bytes:
        """Return the message that is due; its number grows with each."""
        self._sent += 1
        progress = {"progressToken": self._token, "progress": self._sent, "message": self.latest}
        return encode(notification("notifications/progress", progress))


def _line_of(relay: Relay) -> bytes:
    """Return the message of a relay that is due; nothing if it cannot be made: the answers after it must be written."""
    try:
        return relay.line()
    except Exception as error:
        log_fault("making a progress message", error)
        return b""


class Outbox:
    """The messages that are not written yet."""

    def __init__(self, descriptor: int, keep_alive: float = KEEP_ALIVE_S) -> None:
        self._descriptor = descriptor
        self._keep_alive = keep_alive
        self._waiting: deque[bytes | Relay] = deque()
        self._relays: set[Relay] = set()
        self._change = threading.Condition()
        """Of anything here; notified when there is something to write, and when something was written."""
        self._is_writing = False
        self._written = 0
        """Pieces."""
        threading.Thread(target=self._write_on, name="outbox", daemon=True).start()

    def send(self, frame: Fields | list[Fields]) -> None:
        line = encode(frame)
        with self._change:
            self._waiting.append(line)
            self._change.notify_all()

    @contextmanager
    def progress(self, token: RequestId | None) -> Generator[Relay | None]:
        """Provide a relay for one call; none for a client that did not ask for progress."""
        if token is None:
            yield None
            return
        relay = Relay(self, token)
        with self._change:
            self._relays.add(relay)
        try:
            yield relay
        finally:
            self.end_progress(relay)

    def end_progress(self, relay: Relay, *, at_once: bool = False) -> None:
        """Take no more of a relay; what it waits with is sent, unless that shall end `at_once`."""
        with self._change:
            self._relays.discard(relay)
            if at_once and relay in self._waiting:
                self._waiting.remove(relay)

    def send_progress(self, relay: Relay, text: str) -> None:
        with self._change:
            if relay not in self._relays:
                return
            relay.latest, relay.is_fresh = text, True
            if relay not in self._waiting:
                self._waiting.append(relay)
                self._change.notify_all()

    def flush(self) -> bool:
        """Wait until everything is written, or the reader takes nothing any more; tell whether everything was."""
        with self._change:
            while self._waiting or self._is_writing:
                before = self._written
                if not self._change.wait_for(lambda seen=before: self._written != seen, PATIENCE_S):
                    return False
            return True

    def _write_on(self) -> None:
        while True:
            with self._change:
                self._is_writing = False
                self._written += 1
                self._change.notify_all()
                while not self._waiting:
                    if not self._change.wait(self._keep_alive):
                        self._repeat()
                first = self._waiting.popleft()
                self._is_writing = True
                line = first if isinstance(first, bytes) else _line_of(first)
            try:
                self._write(line)
            except OSError:  # the reader has gone, which the main thread sees too
                with self._change:
                    self._waiting.clear()
                    self._is_writing = False
                    self._written += 1
                    self._change.notify_all()
                return

    def _repeat(self) -> None:
        """Have the progress of each call that had no news sent once more."""
        for relay in self._relays:
            if relay.latest and not relay.is_fresh:
                self._waiting.append(relay)
            relay.is_fresh = False

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest[:PIECE]) :]
            with self._change:
                self._written += 1
                self._change.notify_all()
