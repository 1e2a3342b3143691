"""A search in a process of its own, which can be ended at any moment.

An expression that tries everything holds the interpreter for as long as it takes: no thread beside it gets to run.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from ..text.decoding import decoder
from .pattern import Pattern
from .scan import Cancelled, Found

LOOK_S = 0.05
"""Seconds between two looks at whether the search is still wanted."""
PIECE = 64 * 1024


class SearchRequest(Struct, frozen=True):
    """What the process is given on stdin."""

    runs: str
    run_ids: tuple[str, ...]
    text: str
    regex: bool
    ignore_case: bool


_decode_found = decoder(Found)


def search_apart(runs: str, run_ids: Iterable[str], pattern: Pattern, cancelled: Cancelled) -> Iterator[Found]:
    """Yield what `scan.search` would. The process is ended when the iterator is closed."""
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
    """Hand over the request while the process reads it, then take a line for each run."""
    if process.stdin is None or process.stdout is None:
        return
    stdin, stdout = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(stdin, False)
    left, rest = memoryview(request), b""
    while not cancelled():
        readable, writable, _ = select.select([stdout], [stdin] if left else [], [], LOOK_S)
        if writable:
            try:
                left = left[os.write(stdin, left) :]
            except BrokenPipeError:
                return  # it could not even begin
            if not left:
                process.stdin.close()
        if readable:
            piece = os.read(stdout, PIECE)
            *lines, rest = (rest + piece).split(b"\n")
            yield from map(_decode_found, lines)
            if not piece:
                return
