"""The pipes of a command: signals and lost readers, which cancel it, and lines of JSON."""

from __future__ import annotations

import errno
import os
import select
import signal
import stat
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from ..errors import UsageError
from ..text.decoder import UNDECODABLE, decode, why
from ..text.visible import escaped_json
from .output import OutputError, is_terminal, note, writing

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Canceller:
    """A stop that is set by a signal, or when the reader of a watched descriptor has gone.

    A signal writes to a pipe, in any thread. It raises nothing: the watcher of runs would swallow an exception. Each
    check polls that pipe and the watched descriptors, so that an idle run is also cancelled when its reader has gone.
    """

    def __init__(self, watched: Iterable[int] = (1, 2)) -> None:
        """`watched` are descriptors with a reader at the other end; by default stdout and stderr."""
        # Before the pipe is opened: if stdout is closed, the pipe would get its number.
        self._outputs = [descriptor for descriptor in watched if _has_reader(descriptor)]
        self._wakeup, self._request = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poller = select.poll()
        self._poller.register(self._wakeup, select.POLLIN)
        for descriptor in self._outputs:
            self._poller.register(descriptor, 0)  # only errors and hang-ups
        self._reads: dict[int, Callable[[], bool]] = {}
        self._former: dict[int, Any] = {}
        self._former_wakeup = -1
        self._is_set = False
        self.is_unread = False
        """Whether it was set because a reader has gone."""

    def __enter__(self) -> Canceller:
        # Python's own handlers run later, and only in the main thread, which may be waiting for good by then.
        self._former_wakeup = signal.set_wakeup_fd(self._request, warn_on_full_buffer=False)
        for number in SIGNALS:
            # What a shell or nohup has set to be ignored stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, lambda _number, _frame: None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._former_wakeup)

    def listen(self, read: Callable[[], bool], descriptor: int = 0) -> None:
        """Call `read` when stdin or another descriptor has input; it returns False if the other end has gone."""
        try:
            os.fstat(descriptor)
        except OSError:
            self.set()
        else:
            self._poller.register(descriptor, select.POLLIN)
            self._reads[descriptor] = read

    def set(self) -> None:
        """Cancel; a second time changes nothing."""
        try:
            os.write(self._request, b"\0")
        except BlockingIOError:
            return  # the pipe is full of the same request

    def is_set(self) -> bool:
        self._look(0)
        return self._is_set

    def wait(self) -> None:
        """Wait until it is set."""
        while not self._is_set:
            self._look(None)

    def _look(self, timeout: float | None) -> None:
        ready = set[int]() if self._is_set else {descriptor for descriptor, _ in self._poller.poll(timeout)}
        for descriptor in ready:
            is_answer = descriptor in self._reads and self._reads[descriptor]()
            self._is_set = self._is_set or not is_answer
        is_signal = self._wakeup in ready  # ctrl-C ends the reader of a pipeline, too
        self.is_unread = self.is_unread or (not is_signal and not ready.isdisjoint(self._outputs))


def _has_reader(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def read_stdin(what: str) -> str:
    """Read a text from stdin; a person ends it with ctrl-D. Raises UsageError if stdin is closed."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where stdin was closed
        closed = f"cannot read the {what}: stdin is closed"
        raise UsageError(closed, where=what, hint=f"give the {what} as an argument")
    if is_terminal(sys.stdin):
        note(f"Type the {what}, then press ctrl-D on an empty line.")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def write_line(content: Any) -> None:
    """Write one document on stdout as a line. Raises OSError if stdout is closed or has no reader."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where stdout was closed
        raise OutputError(errno.EBADF, "stdin is closed", "stdout")
    try:
        line = escaped_json(msgspec.json.encode(content).decode()).encode()
    except UnicodeEncodeError:  # a path that is not UTF-8
        import json

        line = json.dumps(msgspec.to_builtins(content)).encode()
    unwritten = memoryview(line + b"\n")
    with writing("stdout"):
        sys.stdout.flush()
        while unwritten:
            unwritten = unwritten[os.write(1, unwritten) :]


def read_line(form: type[T]) -> T:
    """Read one line of JSON from stdin into a struct. Raises UsageError."""
    line = _first_line()
    hint = "write one line of JSON to stdin"
    if not line.strip():
        raise UsageError("stdin has no line of JSON", where="stdin", hint=hint)
    try:
        return decode(line, form)
    except UNDECODABLE as error:
        raise UsageError(f"the line on stdin is invalid: {why(error)}", where="stdin", hint=hint) from error


def _first_line() -> bytes:
    """Read the first line, and nothing after the block that it ends in: later lines are read elsewhere."""
    pieces: list[bytes] = []
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where stdin was closed
        return b""
    while True:
        try:
            piece = os.read(0, 1024 * 1024)
        except OSError:
            piece = b""
        pieces.append(piece)
        if not piece or b"\n" in piece:
            return b"".join(pieces).partition(b"\n")[0]
