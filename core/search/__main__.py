"""The process of `apart`: reads a request from stdin, and writes a line of JSON for each run that has a match."""

from __future__ import annotations

import os
import resource
import sys

import msgspec

from ..errors import UsageError
from ..text.decoder import UNDECODABLE, decode
from .pattern import Pattern
from .process import SearchRequest
from .scan import search

MOST_CPU_S = 300
"""Seconds of CPU time after which the kernel ends it, in case its parent cannot."""


def program() -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    try:
        request = decode(sys.stdin.buffer.read(), SearchRequest)
        pattern = Pattern(request.text, regex=request.regex, ignore_case=request.ignore_case)
    except (*UNDECODABLE, UsageError):
        return 2
    try:
        for found in search(request.runs, request.run_ids, pattern, lambda: False):
            sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        os._exit(0)  # the rest has no reader
    return 0


if __name__ == "__main__":
    sys.exit(program())
