"""A search in its own process, which can be ended at any moment.

An expression that backtracks without end holds the interpreter for that time: no other thread can run.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from ..text.decoder import decoder
from .pattern import Pattern
from .scan import Cancelled, Found

LOOK_S = 0.05
"""Seconds between two checks whether the search was cancelled."""
PIECE = 64 * 1024


class SearchRequest(Struct, frozen=True):
    """The input of the process on stdin."""

    runs: str
    run_ids: tuple[str, ...]
    text: str
    regex: bool
    ignore_case: bool


_decode_found = decoder(Found)


def search_apart(runs: str, run_ids: Iterable[str], pattern: Pattern, cancelled: Cancelled) -> Iterator[Found]:
    """Yield the results of `scan.search`. Closing the iterator ends the process."""
    request = SearchRequest(runs, tuple(run_ids), pattern.text, pattern.is_regex, pattern.ignores_case)
    process = subprocess.Popen(
        (sys.executable, "-P", "-E", "-m", "subdeck.core.search"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield from _answers(process, msgspec.json.encode(request), cancelled)
    finally:
        process.kill()
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()
        process.wait()


def _answers(process: subprocess.Popen[bytes], request: bytes, cancelled: Cancelled) -> Iterator[Found]:
    """Send the request as the process reads it, and read a line for each run."""
    if process.stdin is None or process.stdout is None:
        return
    stdin, stdout = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(stdin, False)
    unsent, rest = memoryview(request), b""
    while not cancelled():
        readable, writable, _ = select.select([stdout], [stdin] if unsent else [], [], LOOK_S)
        if writable:
            try:
                unsent = unsent[os.write(stdin, unsent) :]
            except BrokenPipeError:
                return  # it could not even start
            if not unsent:
                process.stdin.close()
        if readable:
            piece = os.read(stdout, PIECE)
            *lines, rest = (rest + piece).split(b"\n")
            yield from map(_decode_found, lines)
            if not piece:
                return
