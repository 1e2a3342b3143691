"""A parent session: its data, and its notifications about background runs."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from .. import paths
from ..paths import hex_digest
from ..project.follower import Update
from ..project.registry import count
from ..project.session import BG_DONE, BG_UPDATE, end_data, end_message
from ..run.describe import background_counts, latest
from ..run.model import LauncherKind, RunMeta, RunReason, RunStatus
from ..run.requests import request_line
from ..run.snapshot import Counts, RunSnapshot
from ..text.plain import one_line

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")
_SESSION_LENGTH = 64

_NOTICE_LEVELS = {RunStatus.COMPLETED: "info", RunStatus.ABORTED: "warning", RunStatus.FAILED: "error"}
"""Notice levels for the end of a run."""


class Resolved(Struct, frozen=True, rename="camel"):
    """A parent's resolution of a model reference; `error` if it found no model."""

    resolved: str | None = None
    thinking_level: str | None = None
    error: str | None = None
    roles: dict[str, str] = {}
    """With an error: models by the names of known roles."""

    @property
    def known_roles(self) -> dict[str, str]:
        """Models by role, as `@fast`."""
        named = ((one_line(name.removeprefix("@"), 60), one_line(model, 120)) for name, model in self.roles.items())
        return {f"@{name}": model for name, model in named if name}


class Parent(Struct, frozen=True):
    session: str
    """As passed to the engine."""
    kind: LauncherKind
    """`pi` or `mcp`."""
    session_file: str | None = None
    branch: Sequence[Any] | None = None
    """The entries of its conversation, root first; for a session without a file."""
    active_tools: tuple[str, ...] | None = None
    """None: not announced."""
    all_tools: tuple[str, ...] | None = None
    """Includes disabled tools; None: not announced."""
    model: str | None = None
    models: tuple[str, ...] | None = None
    """Its available models, in its order; None: not announced."""
    runs: tuple[str, ...] = ()
    """Background runs named in its own entries; in a forked session, they may belong to the original one."""
    resolve: Callable[[str], Resolved | None] | None = None
    """Resolves a model reference, before any other resolver; returns None if it is unknown."""


def is_own(run: RunSnapshot, session: str, named: Sequence[str]) -> bool:
    """Whether a background run was launched by a session, or is named in the session's entries."""
    meta = run.meta
    return meta.background and not run.foreign and (meta.launched_by.session == session or run.run_id in named)


def session_name(text: str) -> str:
    """Return a session id for a parent's session name; the same name gives the same id."""
    clean = _FOREIGN.sub("-", text)
    if clean == text and 0 < len(text) <= _SESSION_LENGTH:
        return text
    digits = hex_digest(text.encode("utf-8", "surrogatepass"), 8)
    return f"{clean[: _SESSION_LENGTH - 9]}-{digits}"


@contextmanager
def conversation_file(parent: Parent, cwd: str) -> Generator[str | None]:
    """Provide a file with the parent's conversation, or None."""
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


class SessionWatch:
    """Converts engine updates to lines for a parent session."""

    def __init__(self, session: str, open_runs: Iterable[str]) -> None:
        """`open_runs` are unfinished for the parent: their ends are reported even if long past."""
        self._session = session
        self._named = tuple(open_runs)
        self._expected = dict.fromkeys(self._named)
        self._runs: dict[str, RunSnapshot] = {}
        self._counts: Counts | None = None
        self._asked: dict[str, set[str]] = {}
        """By run: ids of the requests already reported."""
        self.ended: list[RunSnapshot] = []
        """Runs whose ends the last `take` reported."""

    def owns(self, meta: RunMeta) -> bool:
        """Whether a foreground or background run belongs to the session."""
        return meta.launched_by.session == self._session or meta.run_id in self._named

    def take(self, update: Update) -> Iterator[dict[str, Any]]:
        """Yield ends before counts: the first counts mean that all ends so far were reported.

        Ends written by a newer subdeck are not reported, because only that version knows the result. An untrusted run
        belongs to no session, even if its record names one.
        """
        self.ended = []
        ended = {run.run_id for run in update.ended}
        own_runs = [run for run in reversed(update.runs) if is_own(run, self._session, self._named)]
        for run in own_runs:
            self._runs[run.run_id] = run
            yield from self._new_requests(run)
        for run_id in update.removed:
            self._runs.pop(run_id, None)
            self._asked.pop(run_id, None)
        for run in own_runs:
            if run.has_ended and not run.newer_schema and (run.run_id in ended or run.run_id in self._expected):
                self._expected.pop(run.run_id, None)
                self.ended.append(run)
                yield _end_line(run)
        if not update.complete:
            return
        for run_id in [run_id for run_id in self._expected if run_id not in self._runs]:
            del self._expected[run_id]
            yield _gone(run_id)
        counts = count(self._runs.values())
        if counts != self._counts:
            self._counts = counts
            yield {"type": "counts", **msgspec.to_builtins(counts), "text": background_counts(counts)}

    def _new_requests(self, run: RunSnapshot) -> Iterator[dict[str, Any]]:
        """Notify the parent's user of a run's requests; its model sees them only in the status, and cannot answer."""
        if not run.is_waiting:
            self._asked.pop(run.run_id, None)
            return
        notified = self._asked.setdefault(run.run_id, set())
        for request in run.requests:
            if request.id not in notified:
                notified.add(request.id)
                asks = f"{run.meta.title} {run.meta.short_id} {request_line(request, cwd=run.meta.cwd)}"
                text = f"{asks} — the user can answer in the deck or with subdeck reply {run.meta.short_id}"
                yield {"type": "asked", "runId": run.run_id, "notice": {"text": text, "level": "warning"}}


def _end_line(run: RunSnapshot) -> dict[str, Any]:
    """Report a run's end as an entry and a message of the parent session, and as a notice to the user."""
    subject = one_line(run.meta.description or run.meta.task, 80)
    why = "" if run.status is RunStatus.COMPLETED else f" ({run.reason}): {one_line(latest(run), 160)}"
    text = f"{run.meta.title} {run.meta.short_id} {run.status}{why} — {subject}"
    return _line(end_data(run), end_message(run), text, _NOTICE_LEVELS[run.status], preset=run.meta.preset)


def _gone(run_id: str) -> dict[str, Any]:
    """Report the end of a deleted run, so that the parent stops waiting for it."""
    data = {
        "runId": run_id,
        "status": RunStatus.FAILED.value,
        "reason": RunReason.LOST.value,
        "endedAt": None,
        "message": "its directory was deleted, or belongs to another project",
    }
    text = f"background run {run_id[-6:]} no longer exists: {data['message']}"
    return _line(data, {"customType": BG_DONE, "content": text, "display": True, "details": data}, text, "warning")


def _line(data: dict[str, Any], message: dict[str, Any], text: str, level: str, *, preset: str = "") -> dict[str, Any]:
    return {
        "type": "ended",
        "run": {"preset": preset, **data},
        "entry": {"customType": BG_UPDATE, "data": data},
        "message": message,
        "notice": {"text": text, "level": level},
    }
