"""The connection to the client: input, running calls, and output.

Output is written in order, in a thread, so that a slow reader does not block other work.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from ..errors import explained
from ..system.log import log_fault
from ._protocol import INTERNAL_ERROR, Fields, ProtocolError, RequestId, encode, notification

KEEP_ALIVE_S = 20.0
"""Seconds without news after which the last progress is sent again: some clients time out after 60 s of silence."""

PIECE = 64 * 1024
"""Bytes per write: as much as a pipe holds, to distinguish a slow reader from a stuck one."""

PATIENCE_S = 1.0
"""Seconds a reader gets for each piece at the end. Clients that close stdin give the server two seconds to exit."""


class Relay:
    """The progress of one call; if the client reads too slowly, it gets only the latest."""

    def __init__(self, outbox: Outbox, token: RequestId) -> None:
        self._outbox = outbox
        self._token = token
        self._sent = 0
        self.latest = ""
        self.is_fresh = False
        """Whether progress was reported since the last keep-alive check."""

    def report(self, text: str) -> None:
        """Send this next; never blocks, even if the client does not read."""
        self._outbox.send_progress(self, text)

    def drop(self) -> None:
        """Stop sending progress."""
        self._outbox.end_progress(self, at_once=True)

    def line(self) -> bytes:
        """Return the next message; its number increases each time."""
        self._sent += 1
        progress = {"progressToken": self._token, "progress": self._sent, "message": self.latest}
        return encode(notification("notifications/progress", progress))


def _line_of(relay: Relay) -> bytes:
    """Return a relay's next message; empty if that fails, so that later answers are still written."""
    try:
        return relay.line()
    except Exception as error:
        log_fault("making a progress message", error)
        return b""


class Outbox:
    """Messages waiting to be written."""

    def __init__(self, descriptor: int, keep_alive: float = KEEP_ALIVE_S) -> None:
        self._descriptor = descriptor
        self._keep_alive = keep_alive
        self._waiting: deque[bytes | Relay] = deque()
        self._relays: set[Relay] = set()
        self._change = threading.Condition()
        """Guards this object's state; notified when there is something to write, and after each write."""
        self._is_writing = False
        self._written = 0
        """Pieces written."""
        threading.Thread(target=self._write_on, name="outbox", daemon=True).start()

    def send(self, frame: Fields | list[Fields]) -> None:
        line = encode(frame)
        with self._change:
            self._waiting.append(line)
            self._change.notify_all()

    @contextmanager
    def progress(self, token: RequestId | None) -> Generator[Relay | None]:
        """Provide a relay for one call; None if the client did not request progress."""
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
        """Close a relay; a waiting message is still sent, unless `at_once`."""
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
        """Wait until everything is written or the reader is stuck; return whether everything was written."""
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
            except OSError:  # the reader has gone; the main thread also notices
                with self._change:
                    self._waiting.clear()
                    self._is_writing = False
                    self._written += 1
                    self._change.notify_all()
                return

    def _repeat(self) -> None:
        """Send the progress of each call without news once more."""
        for relay in self._relays:
            if relay.latest and not relay.is_fresh:
                self._waiting.append(relay)
            relay.is_fresh = False

    def _write(self, line: bytes) -> None:
        unwritten = memoryview(line)
        while unwritten:
            unwritten = unwritten[os.write(self._descriptor, unwritten[:PIECE]) :]
            with self._change:
                self._written += 1
                self._change.notify_all()


# --- running calls ---------------------------------------------------------------------------------------------------

CANCEL_TIMEOUT_S = 5.0
"""Seconds that cancelled calls may take to stop their runs."""

Answer = Callable[[Fields | None, Fields | None], None]
"""Takes a result or an error; neither for a request without an answer."""


class Call:
    """One running request."""

    def __init__(self, request_id: RequestId, answer: Answer) -> None:
        self.id = request_id
        self.cancelled = threading.Event()
        """Set when the work has to end; it is still answered, unless the client cancelled it."""
        self.on_drop: Callable[[], None] | None = None
        """Removes its unsent progress when the client cancels it."""
        self._answer = answer
        self._settling = threading.Lock()
        self._is_settled = False

    def settle(self, *, result: Fields | None = None, error: Fields | None = None) -> None:
        """Answer the request, unless it was answered or the client cancelled it."""
        with self._settling:
            is_first, self._is_settled = not self._is_settled, True
        if is_first:
            self._answer(result, error)

    def drop(self) -> None:
        """Cancel the request for the client, and send it nothing more."""
        self.settle()
        self.cancelled.set()
        if self.on_drop:
            self.on_drop()

    def fail(self, error: Exception) -> None:
        """Answer with an unexpected error."""
        log_fault("working on a request", error)
        self.settle(error=ProtocolError(INTERNAL_ERROR, str(explained(error))).error)

    def work_on(self, work: Callable[[Call], Fields]) -> None:
        """Answer with the result of `work`, or with its error."""
        try:
            result = work(self)
        except ProtocolError as error:
            self.settle(error=error.error)
        except Exception as error:
            self.fail(error)
        else:
            self.settle(result=result)


class Calls:
    """The running requests."""

    def __init__(self) -> None:
        self._open: dict[Call, threading.Thread] = {}
        self._change = threading.Lock()

    def start(self, call: Call, work: Callable[[Call], Fields]) -> None:
        """Run a call in a daemon thread, so that a hanging disk does not keep the process from exiting.

        Raises ProtocolError if no more threads can start.
        """

        def run() -> None:
            try:
                call.work_on(work)
            finally:
                with self._change:
                    self._open.pop(call, None)

        thread = threading.Thread(target=run, name="call", daemon=True)
        with self._change:
            self._open[call] = thread
        try:
            thread.start()
        except RuntimeError as error:
            with self._change:
                del self._open[call]
            raise ProtocolError(INTERNAL_ERROR, "too many requests at the same time") from error

    def drop(self, request_id: RequestId) -> None:
        """Cancel a request for the client, if it is still running. Some clients send its number as text."""
        with self._change:
            matching = [call for call in self._open if str(call.id) == str(request_id)]
        for call in matching:
            call.drop()

    def cancel_all(self) -> None:
        """Cancel all running requests, and wait until they end."""
        with self._change:
            under_way = dict(self._open)
        for call in under_way:
            call.cancelled.set()
        deadline = time.monotonic() + CANCEL_TIMEOUT_S
        for thread in under_way.values():
            thread.join(max(0.0, deadline - time.monotonic()))


# --- input -----------------------------------------------------------------------------------------------------------

LINE_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of a line; a longer one is discarded."""

READ = 1024 * 1024


class Inbox:
    """Reads available input; splits it at LF bytes only."""

    def __init__(self, descriptor: int, limit: int = LINE_LIMIT) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._parts: list[bytes] = []
        """The unfinished line."""
        self._length = 0
        """Its bytes so far, kept or not."""
        self.has_ended = False

    def read(self) -> Iterator[bytes | None]:
        """Yield the finished lines, None for one that is too long; at the end also the rest without a newline."""
        try:
            block = os.read(self._descriptor, READ)
        except OSError:
            block = b""  # same as the end
        *ended, unfinished = block.split(b"\n")
        for part in ended:
            self._hold(part)
            yield self._whole()
        self._hold(unfinished)
        if not block:
            self.has_ended = True
            yield self._whole()

    def _hold(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()

    def _whole(self) -> bytes | None:
        line = b"".join(self._parts) if self._length <= self._limit else None
        self._parts.clear()
        self._length = 0
        return line
