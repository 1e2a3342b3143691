"""Who calls a tool: a session of another agent, and what it says about itself."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from .. import paths
from ..paths import hex_digest
from ..run.model import LauncherKind

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
    kind: LauncherKind
    """`pi` or `mcp`."""
    session_file: str | None = None
    branch: Sequence[Any] | None = None
    """The entries of its conversation, root first; for a session that has no file yet."""
    active_tools: tuple[str, ...] | None = None
    """None: it does not say."""
    model: str | None = None
    models: tuple[str, ...] | None = None
    """Those available to it, in its order; None: it does not say."""
    runs: tuple[str, ...] = ()
    """Background runs that its own entries name; in a forked session those may be of the session before."""
    resolve: Callable[[str], Resolved | None] | None = None
    """Asked what a model reference stands for, before anything else is; returns None when it does not know."""


def session_name(text: str) -> str:
    """Return a session id for what a parent calls its session, always the same for the same text."""
    clean = _FOREIGN.sub("-", text)
    if clean == text and 0 < len(text) <= _SESSION_LENGTH:
        return text
    digits = hex_digest(text.encode("utf-8", "surrogatepass"), 8)
    return f"{clean[: _SESSION_LENGTH - 9]}-{digits}"


@contextmanager
def conversation_file(parent: Parent, cwd: str) -> Generator[str | None]:
    """Provide a file that holds the parent's conversation, None where there is none."""
    path = parent.session_file
    if path and os.path.isfile(path) and os.path.getsize(path):
        yield path
    elif parent.branch:
        header = {"type": "session", "version": 3, "id": parent.session, "timestamp": paths.now_iso(), "cwd": cwd}
        with tempfile.NamedTemporaryFile("wb", prefix="subdeck-parent-", suffix=".jsonl") as file:
            file.writelines(json.dumps(entry).encode() + b"\n" for entry in (header, *parent.branch))
            file.flush()
            yield file.name
    else:
        yield None
