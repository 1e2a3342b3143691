"""A session's file: the background runs it launched, and which ends were reported to it.

The entries have the format of pi's custom entries. Appending `bg-update` under the file's lock claims an end, so that
it is reported once even with several readers of the session.
"""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from msgspec import Struct

from .. import paths
from ..errors import UsageError
from ..run.model import RunMeta
from ..run.snapshot import RunSnapshot
from ..system import files
from ..system.line_file import LineTail
from ..text.decoder import UNDECODABLE, decoder
from ..text.plain import one_line

BG_RUN = "pi-subagents:bg-run"
BG_UPDATE = "pi-subagents:bg-update"
BG_DONE = "pi-subagents:bg-done"

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class _Data(Struct, frozen=True, rename="camel"):
    run_id: str = ""


class _Entry(Struct, frozen=True, rename="camel"):
    custom_type: str = ""
    data: _Data = _Data()


_decode_entry = decoder(_Entry)


def checked_session(session: str) -> str:
    """Return a session id that is safe as a file name; raises UsageError."""
    if not _ID.fullmatch(session):
        raise UsageError(f"{one_line(session, 80)!r} is not a session id", hint="use 1 to 64 letters, digits, _ and -")
    return session


class SessionFile:
    """Reads entries of all processes, and appends whole entries under a lock."""

    def __init__(self, project: paths.Project, session: str) -> None:
        self.session = checked_session(session)
        self._path = project.session_file(session)
        self._tail = LineTail(self._path)
        self._launched: dict[str, None] = {}
        self._reported: set[str] = set()
        self._reading = threading.RLock()

    def unreported(self) -> tuple[str, ...]:
        """Return the ids of the session's background runs whose end was not reported yet."""
        with self._reading:
            self._read()
            return tuple(run_id for run_id in self._launched if run_id not in self._reported)

    def add_run(self, meta: RunMeta) -> None:
        with _locked(self._path) as descriptor:
            _write(descriptor, (_custom(BG_RUN, launch_data(meta)),))

    def claim(self, snapshot: RunSnapshot) -> bool:
        """Claim the report of a run's end; True for the one caller, of all processes, that has to make it.

        If the disk refuses the claim, each process reports once: twice is better than never.
        """
        run_id = snapshot.run_id
        with self._reading:
            with suppress(OSError), _locked(self._path) as descriptor:
                self._read()
                if run_id not in self._reported:
                    done = _stamped(type="custom_message", **end_message(snapshot))
                    _write(descriptor, (_custom(BG_UPDATE, end_data(snapshot)), done))
            is_first = run_id not in self._reported
            self._reported.add(run_id)
            return is_first

    def _read(self) -> None:
        """Read the entries appended since the last time; torn and other lines are skipped."""
        for line in self._tail.lines():
            try:
                entry = _decode_entry(line)
            except UNDECODABLE:
                continue
            if entry.custom_type == BG_RUN:
                self._launched[entry.data.run_id] = None
            elif entry.custom_type == BG_UPDATE:
                self._reported.add(entry.data.run_id)


def _custom(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return _stamped(type="custom", customType=kind, data=data)


def _stamped(**fields: Any) -> dict[str, Any]:
    return {**fields, "id": os.urandom(4).hex(), "timestamp": paths.now_iso()}


def launch_data(meta: RunMeta) -> dict[str, Any]:
    """Return the data of a `bg-run` entry."""
    return {
        "runId": meta.run_id,
        "preset": meta.preset,
        "task": meta.task,
        "cwd": meta.cwd,
        "requestedModel": meta.requested_model,
        "resolvedModel": meta.resolved_model,
        "createdAt": meta.created_at,
    }


def end_data(snapshot: RunSnapshot) -> dict[str, Any]:
    """Return the data of a `bg-update` entry for a run that has ended."""
    end = snapshot.end
    return {
        "runId": snapshot.run_id,
        "status": snapshot.status,
        "reason": snapshot.reason,
        "endedAt": end.ended_at if end else None,
        "message": end.message if end else "",
    }


def end_message(snapshot: RunSnapshot) -> dict[str, Any]:
    """Return the message about an end that stays in the session; it does not start a turn."""
    meta = snapshot.meta
    return {
        "customType": BG_DONE,
        "content": f"{meta.title} {meta.short_id} {snapshot.status} ({snapshot.reason}): {one_line(meta.task, 120)}",
        "display": True,
        "details": {"runId": snapshot.run_id, "status": snapshot.status, "reason": snapshot.reason},
    }


def _write(descriptor: int, entries: Iterable[dict[str, Any]]) -> None:
    """Append entries in one write, beginning a new line even after a torn one."""
    block = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        block = b"\n" + block
    if os.write(descriptor, block) < len(block):
        os.ftruncate(descriptor, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def _locked(path: str) -> Generator[int]:
    """Open the session file for appending, and lock it."""
    files.make_private_directory(os.path.dirname(path))
    descriptor = files.open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        files.lock(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)
