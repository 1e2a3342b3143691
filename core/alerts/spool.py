"""The user's spool of alerts. Its files alone show the state of each alert.

A file in `queue` is an alert that waits for the sender; in `quiet`, one that waits because the user is at a deck that
shows its run. A file in `sending` is a delivery, made of one or several alerts: an attempt of it may have begun. A
file in `failed` is a delivery whose attempts all failed. A file in `done` shows that a condition was dealt with and is
never sent again; it stays while the condition can be found again.

Any process may add an alert, or withdraw one. Only the holder of the lock, the sender, moves one on. Annotations are
evaluated here, as in `run.model`.
"""

import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec
from msgspec import Struct

from ..run.enumerations import AlertKind
from ..run.proven import has_result
from ..system import files
from ..system.directory import opened
from ..system.record import read_record
from ..text.decoder import decoded
from .alert import Alert, OpenRequest
from .pending import QUEUE as QUEUE, SENDING as SENDING, directory as directory

QUIET, DONE, FAILED = "quiet", "done", "failed"
KEPT_S = 24 * 3600.0
"""Seconds that the record of a condition is kept at least."""
FAILURES_KEPT_S = 7 * 24 * 3600.0
TORN_S = 60.0
"""Seconds after which a file that was never finished counts as left by a killed process."""
LOCK, WAKE = "lock", "wake"
"""Held by the sender; and the pipe that wakes it up."""
LOCK_DESCRIPTOR = 3
"""The descriptor of the lock in a sender that was started with it."""


class AlertPart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One alert in a document. The setting `content` decides which fields it has."""

    id: str
    kind: AlertKind
    at: str
    """When the condition began."""
    what: str = ""
    """The condition in words."""
    run: str = ""
    """Id of the run; empty for a day's budget."""
    project: str = ""
    """Name of the project."""
    preset: str = ""
    root: str = ""
    """Directory of the project."""
    task: str = ""
    text: str = ""
    """The answer, the error, or the figures of a budget."""
    link: str = ""
    request: OpenRequest | None = None


class Document(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is sent: the same in every attempt."""

    id: str
    """Stable: a receiver that has seen it drops the document."""
    title: str
    text: str
    link: str = ""
    """A page where the user can reply."""
    is_urgent: bool = msgspec.field(default=False, name="urgent")
    """Whether an agent waits for the user."""
    alerts: tuple[AlertPart, ...] = ()


class Progress(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


class Channel(Struct, frozen=True, omit_defaults=True):
    """The state of a delivery on one of the user's ways to be notified."""

    progress: Progress = Progress.WAITING
    tries: int = 0
    is_open: bool = False
    """Whether an attempt has begun whose outcome is unknown."""
    since: float = 0.0
    """When the first attempt began, in seconds since 1970."""
    due: float = 0.0
    """When the next attempt is due."""
    fault: str = ""
    """Why the last attempt failed."""


class Member(Struct, frozen=True):
    """An alert of a delivery."""

    id: str
    subject: str
    kind: AlertKind
    run_dir: str
    """Directory of its run; empty without one."""


class Delivery(Struct, frozen=True):
    at: float
    """When it was made, in seconds since 1970."""
    document: Document
    members: tuple[Member, ...]
    channels: dict[str, Channel]
    """By name: `command`, `url`."""

    @property
    def id(self) -> str:
        return self.document.id

    @property
    def is_over(self) -> bool:
        return all(channel.progress is not Progress.WAITING for channel in self.channels.values())

    @property
    def has_failed(self) -> bool:
        return any(channel.progress is Progress.FAILED for channel in self.channels.values())


class Done(Struct, frozen=True):
    """How a condition was dealt with."""

    subject: str
    kind: AlertKind
    at: float
    """When its delivery was made, or when it was dropped, in seconds since 1970."""
    is_sent: bool
    run_dir: str = ""
    why: str = ""
    """Why it was dropped."""


# --- for every process -----------------------------------------------------------------------------------------------


def add(alert: Alert) -> bool:
    """Queue an alert; return False if its condition is known. Raises OSError."""
    if any(files.exists(directory(subdirectory, alert.id)) for subdirectory in (DONE, QUIET)):
        return False
    queue = directory(QUEUE)
    files.make_private_directory(queue)
    try:
        files.write_new(os.path.join(queue, alert.id), msgspec.json.encode(alert))
    except FileExistsError:
        return False
    return True


def withdraw(alert_id: str) -> None:
    """Take an alert back whose condition is over, unless its delivery has begun."""
    for subdirectory in (QUEUE, QUIET):
        files.remove(directory(subdirectory, alert_id))


def settle(alert_id: str, subject: str, now: float) -> None:
    """Withdraw the alert of a request that was decided: not even a delivery that has begun is tried again. Raises
    OSError.
    """
    withdraw(alert_id)
    if _names(SENDING) and not is_done(alert_id):
        _set_done(alert_id, Done(subject, AlertKind.NEEDS_INPUT, now, is_sent=False, why="the request was decided"))


def is_sending() -> bool:
    """Return whether a sender is running."""
    try:
        lock = files.open_file(directory(LOCK), os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not files.try_lock(lock, shared=True)
    finally:
        os.close(lock)


def is_done(alert_id: str) -> bool:
    """Return whether a condition was dealt with."""
    return files.exists(directory(DONE, alert_id))


def has_quiet() -> bool:
    """Return whether alerts wait until the user leaves a deck."""
    return bool(_names(QUIET))


def failures() -> list[Delivery]:
    """Return the deliveries that failed, the oldest first."""
    return sorted(read_all(FAILED, Delivery, {}).values(), key=lambda delivery: delivery.at)


def forget_failures() -> None:
    """Remove the deliveries that failed: the user has fixed the reason."""
    for name in _names(FAILED):
        files.remove(directory(FAILED, name))


# --- for the sender --------------------------------------------------------------------------------------------------

T = TypeVar("T", bound=Struct)


def read_all(subdirectory: str, kind: type[T], known_records: Mapping[str, T]) -> dict[str, T]:
    """Return a subdirectory's records by name; `known_records` are not read again. Damaged ones are removed."""
    records = dict[str, T]()
    for name in _names(subdirectory):
        path = directory(subdirectory, name)
        record = known_records.get(name)
        if record is None:
            try:
                content = files.read(path)
            except OSError:
                continue  # withdrawn, or read the next time
            record = decoded(content, kind)
        if record is None:
            files.remove(path)
        else:
            records[name] = record
    return records


def begin(delivery: Delivery) -> None:
    """Record a new delivery; its alerts leave the queue. Raises OSError."""
    save(delivery, durable=True)
    for member in delivery.members:
        withdraw(member.id)


def save(delivery: Delivery, *, durable: bool = False) -> None:
    """Record the state of a delivery. Raises OSError."""
    files.make_private_directory(directory(SENDING))
    files.write_whole(directory(SENDING, delivery.id), msgspec.json.encode(delivery), durable=durable)


def finish(delivery: Delivery) -> None:
    """Record that a delivery was sent, or has failed. Repeating it changes nothing. Raises OSError."""
    for member in delivery.members:
        _set_done(member.id, Done(member.subject, member.kind, delivery.at, is_sent=True, run_dir=member.run_dir))
    if delivery.has_failed:
        files.make_private_directory(directory(FAILED))
        files.write_whole(directory(FAILED, delivery.id), msgspec.json.encode(delivery))


def forget(delivery: Delivery) -> None:
    """Remove a delivery: a record of each of its alerts shows that it was dealt with."""
    files.remove(directory(SENDING, delivery.id))


def drop(alert: Alert, why: str, now: float) -> None:
    """Record that an alert is not sent. Raises OSError."""
    _set_done(alert.id, Done(alert.subject, alert.kind, now, is_sent=False, run_dir=alert.run_dir, why=why))
    withdraw(alert.id)


def quieten(alert: Alert) -> None:
    """Let an alert wait until the user leaves the deck. Raises OSError."""
    files.make_private_directory(directory(QUIET))
    files.rename(directory(QUEUE, alert.id), directory(QUIET, alert.id))


def requeue_quiet() -> None:
    """Let the alerts of `quiet` be looked at again. Raises OSError."""
    for name in _names(QUIET):
        files.rename(directory(QUIET, name), directory(QUEUE, name))


def recently_sent(since: float) -> dict[tuple[str, AlertKind], float]:
    """Return when something was last sent, by subject and kind, from this time on."""
    sent = dict[tuple[str, AlertKind], float]()
    for record in _done_since(since):
        key = (record.subject, record.kind)
        if record.is_sent and record.at >= since:
            sent[key] = max(record.at, sent.get(key, 0.0))
    return sent


def _done_since(since: float) -> Iterator[Done]:
    for name, status in _entries(DONE):
        if status.st_mtime >= since and (record := read_record(directory(DONE, name), Done)):
            yield record


def prune(now: float) -> None:
    """Remove what is no longer needed: old records of conditions that cannot be found again, and torn files."""
    for name, status in _entries(DONE):
        if now - status.st_mtime > KEPT_S and not _can_recur(directory(DONE, name)):
            files.remove(directory(DONE, name))
    for name, status in _entries(FAILED):
        if now - status.st_mtime > FAILURES_KEPT_S:
            files.remove(directory(FAILED, name))
    for subdirectory in (QUEUE, QUIET, SENDING, DONE, FAILED):
        for name, status in _entries(subdirectory, hidden=True):
            if now - status.st_mtime > TORN_S:
                files.remove(directory(subdirectory, name))


def _can_recur(path: str) -> bool:
    """Return whether a condition that was dealt with can be found again: its run has not ended."""
    record = read_record(path, Done)
    if record is None or not record.run_dir:
        return False
    return os.path.isdir(record.run_dir) and not has_result(record.run_dir)


def _set_done(alert_id: str, record: Done) -> None:
    files.make_private_directory(directory(DONE))
    files.write_whole(directory(DONE, alert_id), msgspec.json.encode(record))


def _names(subdirectory: str) -> list[str]:
    return [name for name in files.names(directory(subdirectory)) if not name.startswith(".")]


def _entries(subdirectory: str, *, hidden: bool = False) -> list[tuple[str, os.stat_result]]:
    try:
        with opened(directory(subdirectory)) as entries:
            return [entry for entry in entries.entries() if entry[0].startswith(".") is hidden]
    except OSError:
        return []
