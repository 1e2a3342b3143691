"""Who calls a tool: a session of another agent, and what it tells of itself."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .. import paths

if TYPE_CHECKING:
    pass

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")
_SESSION_LENGTH = 64


class Resolved(Struct, frozen=True):
    """What a parent made of a model reference; `error` where it looked and found nothing."""

    resolved: str = ""
    thinking_level: str | None = None
    error: str = ""


class Parent(Struct, frozen=True):
    session: str
    """As the engine was opened with."""
    kind: str
    """`pi` or `mcp`."""
    session_file: str | None = None
    branch: Sequence[Any] | None = None
    """The entries of its conversation, root first; for a session that has no file yet."""
    active_tools: tuple[str, ...] | None = None
    """None: it does not tell."""
    model: str | None = None
    models: tuple[str, ...] | None = None
    """Those available to it, in its order; None: it does not tell."""
    runs: tuple[str, ...] = ()
    """Background runs that its own entries name; of a session that was forked, an earlier one's."""
    resolve: Callable[[str], Resolved | None] | None = None
    """Asked what a model reference stands for, before anybody else; None as its answer: it does not know."""


def session_name(text: str) -> str:
    """Return a session id for what a parent calls its session; the same for the same."""
    clean = _FOREIGN.sub("-", text)
    if clean == text and 0 < len(text) <= _SESSION_LENGTH:
        return text
    digits = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{clean[: _SESSION_LENGTH - 9]}-{digits}"


@contextmanager
def conversation_file(parent: Parent, cwd: str) -> Generator[str | None]:
    """Return a file that a child can be told the parent's conversation from; None where there is none."""
    path = parent.session_file
    if path and os.path.isfile(path) and os.path.getsize(path):
        yield path
    elif parent.branch:
        with tempfile.NamedTemporaryFile("wb", prefix="subdeck-parent-", suffix=".jsonl") as file:
            for entry in (_header(parent, cwd), *parent.branch):
                file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            yield file.name
    else:
        yield None


def _header(parent: Parent, cwd: str) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": parent.session, "timestamp": paths.now_iso(), "cwd": cwd}
