"""Messages, interrupts and replies sent to an unfinished run: a directory with a file for each.

The files are authoritative: a sender may die as soon as its file is written, several may write at once, and entries are
taken in order. Closing the inbox renames the directory, so that every later sender is refused. Each entry has this
user's signature: an agent that can only write files cannot answer its own requests.
"""

import os
import re
import time
from enum import StrEnum

import msgspec
from msgspec import Struct

from .. import paths
from ..system import files
from ..text.decoder import UNDECODABLE, decode
from . import second_copy
from .model import Verdict
from .signature import Verifier, with_signature

LONGEST_TEXT = 1024 * 1024
"""Bytes of a message, as UTF-8."""
BEGINNING = 200
"""Characters of an undelivered message that the run's result repeats."""
MOST_ENTRIES = 1000
"""Entries read at once, the oldest first."""
_LARGEST = 8 * LONGEST_TEXT
"""Bytes of a file: a text with every byte escaped."""
_ENTRY_ID = r"[0-9a-f]{12}"
_NAME = rf"\d{{20}}-{_ENTRY_ID}\.json"
_PASSED = ".passed"
"""The ids of entries from another machine, a line each: they are sent again until delivery is certain."""


class InboxEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message, interrupt or reply. Annotations are evaluated here, as in `model`."""

    id: str
    kind: str
    """A word of `EntryKind`, or another word from a newer subdeck."""
    by: str = ""
    """Its sender: a session, or a parent agent in words."""
    at: str = ""
    text: str = ""
    request: str = ""
    """Of a reply: id of the answered request; empty for any open request."""
    verdict: Verdict | None = None
    hash: str = ""
    """Of a reply: `request_hash` of the request that its sender has seen."""


class EntryKind(StrEnum):
    MESSAGE = "message"
    INTERRUPT = "interrupt"
    REPLY = "reply"
    TAKE_OVER = "take_over"
    """A user is at a terminal to continue the conversation in the agent's UI: see `core/takeover`."""


class InboxClosed(Exception):
    """The run accepts no more entries, or never did."""


def put(
    run_dir: str,
    kind: EntryKind,
    *,
    by: str,
    text: str = "",
    request: str = "",
    verdict: Verdict | None = None,
    read: str = "",
) -> InboxEntry:
    """Send an entry to a run; `read` is the hash of the answered request. Raises InboxClosed if the run accepts no
    more, OSError if the disk fails, and SubdeckError without a key.
    """
    entry = InboxEntry(
        id=os.urandom(6).hex(),
        kind=kind,
        by=by,
        at=paths.now_iso(),
        text=text,
        request=request,
        verdict=verdict,
        hash=read,
    )
    _leave(run_dir, entry)
    return entry


def pass_on(run_dir: str, entry: InboxEntry) -> bool:
    """Store an entry from another machine, with this user's signature here; return False if that was done before.

    Raises as `put` does, and ValueError if its id has another form than subdeck's.
    """
    if not re.fullmatch(_ENTRY_ID, entry.id):
        raise ValueError("its id is not the id of an entry")
    passed = os.path.join(run_dir, _PASSED)
    if entry.id in files.content(passed).decode("ascii", "replace").split():
        return False
    inboxes = (os.path.join(directory, paths.INBOX) for directory in _directories(run_dir))
    waiting = (name for inbox in inboxes for name in files.names(inbox))
    if any(name.endswith(f"-{entry.id}.json") for name in waiting):
        return False
    _leave(run_dir, entry)
    with open(passed, "ab", opener=files.open_private) as file:
        file.write(f"{entry.id}\n".encode())
    return True


def _directories(run_dir: str) -> list[str]:
    """Return the directories with an inbox of a run: its second copy, which is used first, and its own."""
    copied = second_copy.directory_of(run_dir)
    return [copied, run_dir] if os.path.isdir(f"{copied}/{paths.INBOX}") else [run_dir]


def _leave(run_dir: str, entry: InboxEntry) -> None:
    directory = _directories(run_dir)[0]
    name = f"{time.time_ns():020d}-{entry.id}.json"
    # Written outside first: if the inbox is closed by now, the rename fails.
    beside = os.path.join(directory, f".inbox.{entry.id}")
    record = msgspec.json.format(msgspec.json.encode(entry), indent=1)
    files.write_new(beside, with_signature(_subject(run_dir), record))
    try:
        files.rename(beside, os.path.join(directory, paths.INBOX, name))
    except FileNotFoundError:
        raise InboxClosed from None
    finally:
        files.remove(beside)


def _subject(run_dir: str) -> str:
    """Return the subject of an entry's signature: with another one it could pass for a different record of the run."""
    return f"{os.path.basename(run_dir)} {paths.INBOX}"


class Inbox:
    """The inbox for the run's wrapper, or for the process that finishes a lost run: each entry is returned once."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._name = paths.INBOX
        self._directories = _directories(run_dir)
        self._seen: dict[str, str] = {}
        """Paths of unsettled entries by id."""
        self._taken: set[str] = set()
        """Ids of all returned entries: a copy of one has its signature, and another name."""
        self._broken: set[str] = set()
        self._verifier = Verifier()

    def take(self) -> list[InboxEntry]:
        """Return the entries since the last call, in order. An unreadable one is tried again the next time."""
        known_paths = {*self._seen.values(), *self._broken}
        entries: list[InboxEntry] = []
        for path in [path for path in self._paths() if path not in known_paths][:MOST_ENTRIES]:
            try:
                content = files.read(path)
            except OSError:
                continue
            entry = _decoded(content, os.path.basename(path))
            is_ours = self._verifier.is_record_signed(_subject(self._run_dir), content)
            if entry is None or not is_ours or entry.id in self._taken:
                self._broken.add(path)
            else:
                self._taken.add(entry.id)
                self._seen[entry.id] = path
                entries.append(entry)
        return entries

    def _paths(self) -> list[str]:
        """Return the files of all entries, in order of arrival."""
        paths_by_name = {
            name: f"{directory}/{self._name}/{name}"
            for directory in reversed(self._directories)
            for name in files.names(f"{directory}/{self._name}")
            if re.fullmatch(_NAME, name)
        }
        return [paths_by_name[name] for name in sorted(paths_by_name)]

    def settle(self, entry_id: str) -> None:
        """Remove an entry, once the records have its result."""
        path = self._seen.pop(entry_id, None)
        if path is not None:
            files.remove(path)

    def close(self) -> list[InboxEntry]:
        """Close the inbox; return the entries not returned before. `discard` removes the rest."""
        for directory in self._directories:
            try:
                files.rename(f"{directory}/{paths.INBOX}", f"{directory}/{paths.CLOSED_INBOX}")
            except OSError:
                pass  # it was closed before, or the run has none
        self._name = paths.CLOSED_INBOX
        self._seen = {entry_id: _moved(path) for entry_id, path in self._seen.items()}
        self._broken = set(map(_moved, self._broken))
        return self.take()

    def discard(self) -> None:
        for directory in self._directories:
            files.remove_tree(f"{directory}/{paths.CLOSED_INBOX}")


def _moved(path: str) -> str:
    """Return the path of an inbox file once the inbox is closed."""
    directory, name = os.path.split(path)
    return f"{os.path.dirname(directory)}/{paths.CLOSED_INBOX}/{name}"


def _decoded(content: bytes, name: str) -> InboxEntry | None:
    """Decode an entry, which must have the id in its file's name: that name is unique."""
    if len(content) > _LARGEST:
        return None
    try:
        entry = decode(content, InboxEntry)
    except UNDECODABLE:
        return None
    return entry if name.endswith(f"-{entry.id}.json") else None
