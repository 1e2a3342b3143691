"""A session of another agent that calls the tools: what it says about itself, what it is told of background runs."""

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
"""How urgent the notice of a run's end is."""


class Resolved(Struct, frozen=True, rename="camel"):
    """What a parent made of a model reference; `error` where it looked and found nothing."""

    resolved: str | None = None
    thinking_level: str | None = None
    error: str | None = None
    roles: dict[str, str] = {}
    """Beside an error: the models of the roles that it knows, by name."""

    @property
    def known_roles(self) -> dict[str, str]:
        """The models of its roles, as `@fast`."""
        named = ((one_line(name.removeprefix("@"), 60), one_line(model, 120)) for name, model in self.roles.items())
        return {f"@{name}": model for name, model in named if name}


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
    all_tools: tuple[str, ...] | None = None
    """Those that are switched off included; None: it does not say."""
    model: str | None = None
    models: tuple[str, ...] | None = None
    """Those available to it, in its order; None: it does not say."""
    runs: tuple[str, ...] = ()
    """Background runs that its own entries name; in a forked session those may be of the session before."""
    resolve: Callable[[str], Resolved | None] | None = None
    """Asked what a model reference stands for, before anything else is; returns None when it does not know."""


def is_own(run: RunSnapshot, session: str, named: Sequence[str]) -> bool:
    """Tell whether a background run was launched by a session, or is named by the session's own entries."""
    meta = run.meta
    return meta.background and not run.foreign and (meta.launched_by.session == session or run.run_id in named)


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


class SessionWatch:
    """Turn the updates of an engine into lines for a parent session."""

    def __init__(self, session: str, open_runs: Iterable[str]) -> None:
        """`open_runs` are those that the parent believes unfinished: their ends are reported even if long past."""
        self._session = session
        self._named = tuple(open_runs)
        self._expected = dict.fromkeys(self._named)
        self._runs: dict[str, RunSnapshot] = {}
        self._counts: Counts | None = None
        self._asked: dict[str, set[str]] = {}
        """By run the ids of the requests that were told."""
        self.ended: list[RunSnapshot] = []
        """The runs whose ends the last `take` reported."""

    def owns(self, meta: RunMeta) -> bool:
        """Tell whether a run is of the session, in the foreground or in the background."""
        return meta.launched_by.session == self._session or meta.run_id in self._named

    def take(self, update: Update) -> Iterator[dict[str, Any]]:
        """Yield ends before counts: the first counts say that every end so far has been reported.

        The end of a run that a newer subdeck wrote is not reported: only that version knows how it ended. A foreign run
        is nobody's, whatever session its record names.
        """
        self.ended = []
        ended = {run.run_id for run in update.ended}
        own = [run for run in reversed(update.runs) if is_own(run, self._session, self._named)]
        for run in own:
            self._runs[run.run_id] = run
            yield from self._new_requests(run)
        for run_id in update.removed:
            self._runs.pop(run_id, None)
            self._asked.pop(run_id, None)
        for run in own:
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
        """Tell the person at the parent what a run asks; its model is told by the status alone, and cannot answer."""
        if not run.is_waiting:
            self._asked.pop(run.run_id, None)
            return
        told = self._asked.setdefault(run.run_id, set())
        for request in run.requests:
            if request.id not in told:
                told.add(request.id)
                asks = f"{run.meta.title} {run.meta.short_id} {request_line(request, cwd=run.meta.cwd)}"
                text = f"{asks} — the user can answer in the deck or with subdeck reply {run.meta.short_id}"
                yield {"type": "asked", "runId": run.run_id, "notice": {"text": text, "level": "warning"}}


def _end_line(run: RunSnapshot) -> dict[str, Any]:
    """Report the end of a run as an entry and a message of the parent session, and as a notice to a person."""
    about = one_line(run.meta.description or run.meta.task, 80)
    why = "" if run.status is RunStatus.COMPLETED else f" ({run.reason}): {one_line(latest(run), 160)}"
    text = f"{run.meta.title} {run.meta.short_id} {run.status}{why} — {about}"
    return _line(end_data(run), end_message(run), text, _NOTICE_LEVELS[run.status], preset=run.meta.preset)


def _gone(run_id: str) -> dict[str, Any]:
    """Report the end of a run that was deleted, so that nobody waits for it."""
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
