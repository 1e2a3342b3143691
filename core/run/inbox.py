"""What was sent to a run while it goes on: a directory with a file for each message, interrupt or reply.

Files are the truth: a sender may die as soon as one is written, several may write at once, and each is taken in its
turn. It is closed by giving the directory another name, so that whoever comes later is certainly refused.
Each carries this user's mark: a child that may write files, and nothing more, cannot answer what it asks itself.
"""

import os
import re
import time
from enum import StrEnum

import msgspec
from msgspec import Struct

from .. import paths
from ..system import files
from ..text.decoding import UNDECODABLE, decode
from . import own_copy
from .mark import Verifier, marked
from .model import Verdict

LONGEST_TEXT = 1024 * 1024
"""Bytes of a message, as UTF-8."""
BEGINNING = 200
"""Characters of a message that the result of a run repeats, where it was not delivered."""
MOST_ENTRIES = 1000
"""Entries that are looked at in one go, the oldest ones."""
_LARGEST = 8 * LONGEST_TEXT
"""Bytes of a file: a text whose every byte is escaped."""
_ENTRY_ID = r"[0-9a-f]{12}"
_NAME = rf"\d{{20}}-{_ENTRY_ID}\.json"
_PASSED = ".passed"
"""The ids of what came from another machine, a line each: it is sent again until that is certain."""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was sent. Annotations are evaluated here, as in `model`."""

    id: str
    kind: str
    """Of `EntryKind`; what a newer subdeck may send is another word."""
    by: str = ""
    """Who sent it: a session, or a parent agent in words."""
    at: str = ""
    text: str = ""
    request: str = ""
    """Of a reply: the id of what is replied to; empty for whatever is asked."""
    verdict: Verdict | None = None
    hash: str = ""
    """Of a reply: of the request that its sender has seen, by `request_hash`."""


class EntryKind(StrEnum):
    MESSAGE = "message"
    INTERRUPT = "interrupt"
    REPLY = "reply"
    TAKE_OVER = "take_over"
    """A person wants to go on with the conversation by hand, and is there: see `core/takeover`."""


class InboxClosed(Exception):
    """The run takes nothing more, or never took anything."""


def put(
    run_dir: str,
    kind: EntryKind,
    *,
    by: str,
    text: str = "",
    request: str = "",
    verdict: Verdict | None = None,
    read: str = "",
) -> Entry:
    """Leave something for a run; `read` is the hash of the request that is replied to. Raises InboxClosed where nobody
    will take it, OSError where the disk refuses it, and SubdeckError without a key.
    """
    entry = Entry(
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


def pass_on(run_dir: str, entry: Entry) -> bool:
    """Leave what was sent from another machine, with this user's mark here; False where that was done before.

    Raises as `put` does, and ValueError for an entry without an id like ours.
    """
    if not re.fullmatch(_ENTRY_ID, entry.id):
        raise ValueError("its id is not the id of an entry")
    passed = os.path.join(run_dir, _PASSED)
    if entry.id in files.content(passed).decode("ascii", "replace").split():
        return False
    waiting = (name for place in _places(run_dir) for name in files.names(os.path.join(place, paths.INBOX)))
    if any(name.endswith(f"-{entry.id}.json") for name in waiting):
        return False
    _leave(run_dir, entry)
    with open(passed, "ab", opener=files.open_private) as file:
        file.write(f"{entry.id}\n".encode())
    return True


def _places(run_dir: str) -> list[str]:
    """Return the directories that have an inbox of a run: its second copy, which is used first, and its own."""
    copied = own_copy.directory_of(run_dir)
    return [copied, run_dir] if os.path.isdir(f"{copied}/{paths.INBOX}") else [run_dir]


def _leave(run_dir: str, entry: Entry) -> None:
    place = _places(run_dir)[0]
    name = f"{time.time_ns():020d}-{entry.id}.json"
    # It is written outside: where the inbox is closed meanwhile, its name leads nowhere any more.
    beside = os.path.join(place, f".inbox.{entry.id}")
    record = msgspec.json.format(msgspec.json.encode(entry), indent=1)
    files.write_new(beside, marked(_about(run_dir), record))
    try:
        files.rename(beside, os.path.join(place, paths.INBOX, name))
    except FileNotFoundError:
        raise InboxClosed from None
    finally:
        files.remove(beside)


def _about(run_dir: str) -> str:
    """Return what the mark of an entry is for: by another one it would pass for another record of the run."""
    return f"{os.path.basename(run_dir)} {paths.INBOX}"


class Inbox:
    """The inbox as the run's wrapper sees it, or who finishes a lost run: each entry is handed out once."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._name = paths.INBOX
        self._places = _places(run_dir)
        self._seen: dict[str, str] = {}
        """Paths by the ids of the entries that are not settled."""
        self._taken: set[str] = set()
        """The ids of all entries that were handed out: a copy of one has its mark, and another name."""
        self._broken: set[str] = set()
        self._verifier = Verifier()

    def take(self) -> list[Entry]:
        """Return what came since the last call, in its order. What cannot be read now is tried again the next time."""
        known = {*self._seen.values(), *self._broken}
        entries: list[Entry] = []
        for path in [path for path in self._paths() if path not in known][:MOST_ENTRIES]:
            try:
                content = files.read(path)
            except OSError:
                continue
            entry = _decoded(content, os.path.basename(path))
            is_ours = self._verifier.is_marked(_about(self._run_dir), content)
            if entry is None or not is_ours or entry.id in self._taken:
                self._broken.add(path)
            else:
                self._taken.add(entry.id)
                self._seen[entry.id] = path
                entries.append(entry)
        return entries

    def _paths(self) -> list[str]:
        """Return the files of all entries, in the order in which they came."""
        paths_by_name = {
            name: f"{place}/{self._name}/{name}"
            for place in reversed(self._places)
            for name in files.names(f"{place}/{self._name}")
            if re.fullmatch(_NAME, name)
        }
        return [paths_by_name[name] for name in sorted(paths_by_name)]

    def settle(self, entry_id: str) -> None:
        """Take an entry away, once the records say what became of it."""
        path = self._seen.pop(entry_id, None)
        if path is not None:
            files.remove(path)

    def close(self) -> list[Entry]:
        """Let nothing more in; return what was not handed out yet. Nothing is left of the inbox after `discard`."""
        for place in self._places:
            try:
                files.rename(f"{place}/{paths.INBOX}", f"{place}/{paths.CLOSED_INBOX}")
            except OSError:
                pass  # it was closed before, or the run has none
        self._name = paths.CLOSED_INBOX
        self._seen = {entry_id: _moved(path) for entry_id, path in self._seen.items()}
        self._broken = set(map(_moved, self._broken))
        return self.take()

    def discard(self) -> None:
        for place in self._places:
            files.remove_tree(f"{place}/{paths.CLOSED_INBOX}")


def _moved(path: str) -> str:
    """Return where a file of the inbox is once that is closed."""
    place, name = os.path.split(path)
    return f"{os.path.dirname(place)}/{paths.CLOSED_INBOX}/{name}"


def _decoded(content: bytes, name: str) -> Entry | None:
    """Read an entry; its id is that of its file's name, which nobody else has."""
    if len(content) > _LARGEST:
        return None
    try:
        entry = decode(content, Entry)
    except UNDECODABLE:
        return None
    return entry if name.endswith(f"-{entry.id}.json") else None
