"""A child session in pi's form (JSONL v3): a header, then entries that each name their parent."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any, cast

from . import MODEL
from .arguments import Options


class SessionError(Exception):
    """The session cannot be used; the text is what is printed after `Error: `."""


class Session:
    """Appends entries to a session file, one write each; without a path it only counts them."""

    def __init__(
        self, header: dict[str, Any], path: str | None, entries: list[dict[str, Any]] | None = None, torn: bool = False
    ) -> None:
        """`entries`: of a file that has its header, None for a new file; `torn`: its last line has no end."""
        self.header = header
        is_new, entries = entries is None, entries or []
        self.earlier_turns = sum(_role(entry) == "user" for entry in entries)
        """Tasks that the session already held."""
        self._path = path
        self._entries = len(entries)
        self._leaf: str | None = entries[-1].get("id") if entries else None
        self._pending = "\n" if torn else ""
        """Written before the next entry; holds the header of a new file until there is something to keep."""
        if path and is_new:
            self._pending = f"{encode(header)}\n"

    def add_message(self, message: dict[str, Any]) -> None:
        """Append one message; the first entry of a new file comes after who answers."""
        if not self._entries:
            provider, _, model = MODEL.partition("/")
            self._append({"type": "model_change"}, {"provider": provider, "modelId": model})
            self._append({"type": "thinking_level_change"}, {"thinkingLevel": "off"})
        self._append({"type": "message"}, {"message": message})

    def _append(self, kind: dict[str, Any], content: dict[str, Any]) -> None:
        self._entries += 1
        entry_id = f"{self._entries:08x}"
        entry = {**kind, "id": entry_id, "parentId": self._leaf, "timestamp": iso_now(), **content}
        self._leaf = entry_id
        if self._path is None:
            return
        data = f"{self._pending}{encode(entry)}\n".encode("utf-8", "replace")
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError as error:
            print(f"Warning: session {self._path} is not written: {error.strerror}", file=sys.stderr)
            self._path = None
        self._pending = ""


def open_session(options: Options, cwd: str) -> Session:
    """Create or continue the session that the options name; raises SessionError."""
    session_id = options.session_id or new_id()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", session_id):
        raise SessionError(f"Invalid session id: {session_id}")
    path = _session_path(options, session_id) if options.keep_session else None
    if path and os.path.exists(path) and os.path.getsize(path):
        return _continued(path)
    if path:
        try:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        except OSError as error:
            raise SessionError(f"cannot create the folder of session {path}: {error.strerror}") from error
    header = {"type": "session", "version": 3, "id": session_id, "timestamp": iso_now(), "cwd": cwd}
    return Session(header, path)


def encode(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def iso_now() -> str:
    seconds = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"


def new_id() -> str:
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _session_path(options: Options, session_id: str) -> str | None:
    named = options.session
    if named and (os.sep in named or named.endswith(".jsonl")):
        return named
    directory = options.session_dir or os.environ.get("PI_CODING_AGENT_SESSION_DIR")
    wanted = named or options.session_id
    if wanted and directory and os.path.isdir(directory):
        names = [name.removesuffix(".jsonl") for name in os.listdir(directory) if name.endswith(".jsonl")]
        fitting = [name for name in names if _id_of(name) == wanted or (named and _id_of(name).startswith(wanted))]
        if fitting:
            return os.path.join(directory, f"{max(fitting)}.jsonl")
    if named:
        raise SessionError(f"No session found matching '{named}'")
    if not directory:
        return None
    stamp = iso_now().replace(":", "-").replace(".", "-")
    return os.path.join(directory, f"{stamp}_{session_id}.jsonl")


def _id_of(file_stem: str) -> str:
    return file_stem.partition("_")[2]


def _continued(path: str) -> Session:
    """Read an existing file; lines that do not parse are passed over, as pi does, but the header must be one."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SessionError(f"cannot read session {path}: {error.strerror}") from error
    lines = [entry for line in data.split(b"\n") if (entry := _decoded(line))]
    if not lines or lines[0].get("type") != "session" or not isinstance(lines[0].get("id"), str):
        raise SessionError(f"Session file is not a valid pi session: {path}")
    return Session(lines[0], path, lines[1:], torn=not data.endswith(b"\n"))


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        entry: Any = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) else None


def _role(entry: dict[str, Any]) -> str:
    message: Any = entry.get("message")
    return str(cast("dict[str, Any]", message).get("role", "")) if isinstance(message, dict) else ""
