"""Run a program for one answer, with a time limit, and kill it with all processes that it started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from msgspec import Struct

LARGEST = 16 * 1024 * 1024
"""Maximum bytes of output."""
GOING_S = 3.0
"""Seconds that a program may take to exit after its answer."""
_PIECE = 64 * 1024

_asked: set[subprocess.Popen[bytes]] = set()
"""Programs running now."""
_starting = Lock()


class Said(Struct, frozen=True):
    """A program's output up to its answer or exit."""

    stdout: bytes
    stderr: bytes
    code: int | None
    """None if the program was killed after its answer."""


def ask(
    command: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str],
    words: bytes = b"",
    is_answer: Callable[[bytes], bool] | None = None,
) -> Said:
    """Run a program in the user's home with `words` on stdin. Return its output once it exits, or once `is_answer`
    accepts a line of stdout; only with `is_answer`, stdin stays open until then.

    Raises OSError if the program cannot start or writes too much, TimeoutError after `timeout` seconds.
    """
    process = _start(command, env)
    try:
        return _heard(process, words, is_answer, time.monotonic() + timeout)
    except BaseException:
        _kill(process)
        raise
    finally:
        _end(process)


def _start(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    home = os.path.expanduser("~")
    with _starting:  # a program started during `end_all` would be missed
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home if os.path.isdir(home) else "/",
            env={**os.environ, **env},
            start_new_session=True,
        )
        _asked.add(process)
    return process


def _heard(
    process: subprocess.Popen[bytes], words: bytes, is_answer: Callable[[bytes], bool] | None, deadline: float
) -> Said:
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise OSError("it has no pipes")
    output = {stdout: bytearray(), stderr: bytearray()}
    looked = 0
    """Bytes of stdout already checked for the answer."""
    try:
        stdin.write(words)
        stdin.flush()
        if is_answer is None:
            stdin.close()
    except BrokenPipeError:
        pass  # it exits without reading stdin; its output gives the reason
    with selectors.DefaultSelector() as selector:
        for pipe in output:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                pipe = stdout if key.fileobj is stdout else stderr
                piece = os.read(pipe.fileno(), _PIECE)
                if not piece:
                    selector.unregister(pipe)
                output[pipe] += piece
            if sum(map(len, output.values())) > LARGEST:
                raise OSError(0, f"it wrote more than {LARGEST >> 20} MB")
            *lines, rest = bytes(output[stdout][looked:]).split(b"\n")
            looked = len(output[stdout]) - len(rest)
            if is_answer and any(map(is_answer, lines)):
                return Said(bytes(output[stdout]), bytes(output[stderr]), None)
    try:
        code = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    return Said(bytes(output[stdout]), bytes(output[stderr]), code)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close its pipes, give it a moment to exit, then kill the rest of its process group."""
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        try:
            pipe.close()
        except OSError:
            continue  # unread words
    if process.returncode is None:
        _wait_unreaped(process.pid)
        _kill(process)
    process.wait()
    _asked.discard(process)


def _wait_unreaped(pid: int) -> None:
    """Wait for a process to exit without reaping it, so that its process group id is not reused."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            selector.select(GOING_S)
    finally:
        os.close(descriptor)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass  # the group is already gone


def end_all() -> None:
    """Kill all running queries and block new ones, before this process exits."""
    _starting.acquire()
    for process in tuple(_asked):
        _kill(process)
