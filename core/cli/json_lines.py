"""JSON over stdio, a document a line."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

import msgspec

from ..errors import UsageError


def write_line(content: Any) -> None:
    """Write one document on stdout in one piece. Raises OSError when nobody reads any more."""
    try:
        line = msgspec.json.encode(content)
    except UnicodeEncodeError:  # a path that is no UTF-8
        import json

        line = json.dumps(msgspec.to_builtins(content)).encode()
    sys.stdout.flush()
    rest = memoryview(line + b"\n")
    while rest:
        rest = rest[os.write(1, rest) :]


def read_line() -> dict[str, Any]:
    """Read one object from stdin. Raises UsageError."""
    line = _first_line()
    hint = "write one line of JSON to stdin"
    if not line.strip():
        raise UsageError("stdin has no line of JSON", where="stdin", hint=hint)
    try:
        document: object = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"stdin has no valid JSON: {error}", where="stdin", hint=hint) from error
    if not isinstance(document, dict):
        raise UsageError("the line on stdin is no JSON object", where="stdin", hint=hint)
    return cast("dict[str, Any]", document)


def _first_line() -> bytes:
    """Read up to the first newline and not a byte further than the same piece: what follows is read elsewhere."""
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
