"""A child session in pi's form (JSONL v3): a header, then entries that each name their parent."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, cast

PROVIDER, MODEL = "offline", "reader"
"""What answers, whatever model was asked for: no model is behind it."""


class SessionError(Exception):
    """The session cannot be used; the text is what is printed after `Error: `."""


class Session:
    """Appends entries to a session file, one write each; without a path it writes nothing."""

    def __init__(self, header: dict[str, Any], entries: list[dict[str, Any]], path: str | None, pending: bytes) -> None:
        """`pending` goes to the file before the next entry: the header of a new one, the end of a torn line."""
        self.header = header
        self.earlier_tasks = sum(entry.get("message", {}).get("role") == "user" for entry in entries)
        self._entries = len(entries)
        self._leaf: str | None = entries[-1].get("id") if entries else None
        self._path = path
        self._pending = pending

    def add(self, kind: str, **content: Any) -> None:
        """Append one entry."""
        self._entries += 1
        entry_id = f"{self._entries:08x}"
        entry = {"type": kind, "id": entry_id, "parentId": self._leaf, "timestamp": _iso_now(), **content}
        self._leaf = entry_id
        if self._path is None:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, self._pending + encode(entry))
            finally:
                os.close(descriptor)
        except OSError as error:
            print(f"Warning: session {self._path} is not written: {error.strerror}", file=sys.stderr)
            self._path = None
        self._pending = b""


def open_session(path: str | None, cwd: str) -> Session:
    """Create or continue the session in a file; raises SessionError.

    Lines that do not parse are passed over, as in pi, but the header must be one.
    """
    try:
        if path:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        data = b""
        if path and os.path.exists(path):
            with open(path, "rb") as file:
                data = file.read()
    except OSError as error:
        raise SessionError(f"cannot open session {path}: {error.strerror}") from error
    if not data:
        header = {"type": "session", "version": 3, "id": _new_id(), "timestamp": _iso_now(), "cwd": cwd}
        return Session(header, [], path, encode(header))
    header, *entries = [entry for line in data.split(b"\n") if (entry := _decoded(line))] or [{}]
    if header.get("type") != "session" or not isinstance(header.get("id"), str):
        raise SessionError(f"Session file is not a valid pi session: {path}")
    return Session(header, entries, path, b"" if data.endswith(b"\n") else b"\n")


def encode(value: dict[str, Any]) -> bytes:
    """Return one line of JSON, with its newline."""
    return f"{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n".encode("utf-8", "replace")


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        entry: Any = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) else None


def _new_id() -> str:
    digits = os.urandom(16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _iso_now() -> str:
    seconds = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"
