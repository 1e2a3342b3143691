"""Read the last turns of a pi session file (JSONL, versions 1 to 3) as a conversation, even from a huge file.

Entries form a tree by `id` and `parentId`; the last line is the leaf. A parent always precedes its children, so one
pass from the end finds the branch, reading only the beginning of each line.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from ...errors import UsageError
from ...system.directory import RefusedError
from ...system.files import open_regular
from ...system.line_file import CHUNK, Line, lines_backward
from ...text.decoder import UNDECODABLE, decoder, fit
from .._json_lines import decode, items, mapping, string
from ..history import Block, History, Message, Text, Thinking, ToolOutput, ToolUse, Turn

_HINT = "use the .jsonl file of a pi session; pi keeps them in sessions/ below its agent directory"

_ANSWERS = frozenset({"assistant", "toolResult"})


class SessionFileError(UsageError):
    """A file is not readable as a pi session."""


@contextmanager
def open_history(path: str, recent_turns: int) -> Generator[History]:
    """Open a session for its last turns, whose messages can be read while it is open.

    The result is the context that pi would send to its model: the active branch, with a compaction's summary and
    context edits applied. A torn last line, from a pi that was killed or is writing, is skipped.

    Raises SessionFileError if the file is missing, unreadable, or not a pi session.
    """
    try:
        descriptor, status = open_regular(path)
    except FileNotFoundError:
        raise SessionFileError("the parent session does not exist", where=path, hint=_HINT) from None
    except RefusedError:
        raise SessionFileError("the parent session is not a file", where=path, hint=_HINT) from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    try:
        if status.st_size == 0:
            raise SessionFileError("the parent session is empty", where=path, hint=_HINT)
        version = _version(descriptor, path)
        yield _Scan(descriptor, recent_turns).of(branch(descriptor, status.st_size, is_tree=version > 1))
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)


def _unreadable(path: str, error: Exception) -> SessionFileError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return SessionFileError(f"cannot read the parent session: {reason}", where=path, hint=_HINT)


def _version(descriptor: int, path: str) -> int:
    """Read the version from the first line."""
    first = os.pread(descriptor, 64 * 1024, 0).partition(b"\n")[0]
    try:
        header = decode_header(first)
    except UNDECODABLE:
        header = Header()
    if header.type != "session" or not header.id:
        what = "not a pi session file: its first line is not a session header"
        raise SessionFileError(what, where=path, hint=_HINT)
    return header.version


class _Messages:
    """Messages at these positions of a scan, each decoded on access."""

    def __init__(self, read: Callable[[int], Message], positions: range) -> None:
        self._read = read
        self._positions = positions

    def __iter__(self) -> Iterator[Message]:
        return map(self._read, self._positions)

    def __reversed__(self) -> Iterator[Message]:
        return map(self._read, reversed(self._positions))


class _Scan:
    """Collects the last turns from a branch's entries, starting at the leaf."""

    def __init__(self, descriptor: int, recent_turns: int) -> None:
        self._descriptor = descriptor
        self._recent_turns = recent_turns
        self._offsets = array("Q")
        """Offsets of the kept messages, the latest first; a session may have a million."""
        self._lengths = array("Q")
        self._contents: dict[int, Any] = {}
        """By offset: the content that a context edit gave to a message."""
        self._starts: list[int] = []
        """Start of each turn, the last turn first."""
        self._is_answered = False
        """Whether an answer lies between the latest entry and the start of the turn found before."""
        self._is_full = recent_turns < 1
        self._edits: dict[bytes, Any] = {}
        """By target id: the latest replacement, or None for removal. A target precedes its edits in the file."""
        self._first_kept: bytes | None = None
        """From the latest compaction; empty if it keeps nothing, None if there was none yet."""
        self._summary = ""
        self._kept_after = 0
        """Number of kept messages when the compaction was found: the messages after it."""
        self._has_looked_ahead = False
        self._model: str | None = None

    def of(self, entries: Iterable[SessionEntry]) -> History:
        for entry in entries:
            self._meet(entry)
            if self._is_over(entry):
                return self._conversation(len(self._offsets))
        return self._conversation(len(self._offsets) if self._first_kept is None else self._kept_after)

    def _meet(self, entry: SessionEntry) -> None:
        match entry.type:
            case "message" | "custom_message" | "branch_summary":
                if entry.role != "system":
                    self._take(entry)
            case "compaction" if self._first_kept is None:
                compaction = self._fields(entry)
                self._summary = string(compaction.get("summary"))
                self._first_kept = string(compaction.get("firstKeptEntryId")).encode()
                self._kept_after = len(self._offsets)
            case "context_edit":
                edit = self._fields(entry)
                if "replacement" in edit:
                    self._edits.setdefault(string(edit.get("targetId")).encode(), edit["replacement"])
            case _:
                pass
        if self._model is None and (entry.type == "model_change" or entry.role == "assistant"):
            self._model = _model(self._fields(entry))

    def _is_over(self, entry: SessionEntry) -> bool:
        if self._first_kept is not None:
            return self._first_kept in (b"", entry.id) or (self._is_full and len(self._offsets) == self._kept_after)
        if self._is_full and not self._has_looked_ahead:
            self._has_looked_ahead = True
            return not has_compaction(self._descriptor, entry.offset)
        return False

    def _take(self, entry: SessionEntry) -> None:
        """Keep a message, unless enough turns are kept or an edit removed it."""
        if self._is_full or (self._edits and self._is_edited_away(entry)):
            return
        if entry.role in _ANSWERS:
            self._is_full = not self._is_answered and len(self._starts) >= self._recent_turns
            if self._is_full:
                return
            self._is_answered = True
        elif entry.role == "user" and (self._is_answered or not self._starts):
            self._is_answered = False
            self._starts.append(len(self._offsets))
        elif entry.role == "user":
            self._starts[-1] = len(self._offsets)  # there is no answer between this message and the one found before
        self._offsets.append(entry.offset)
        self._lengths.append(entry.length)

    def _is_edited_away(self, entry: SessionEntry) -> bool:
        if entry.id not in self._edits:
            return False
        replacement = self._edits.pop(entry.id)
        if replacement is not None:
            self._contents[entry.offset] = mapping(replacement).get("content")
        return replacement is None

    def _fields(self, entry: SessionEntry) -> dict[str, Any]:
        return fields_of(self._descriptor, entry.offset, entry.length) or {}

    def _conversation(self, kept: int) -> History:
        """Cut the kept messages into turns; messages before the first user message make one if there is room."""
        starts = [start for start in self._starts if start < kept]
        if len(starts) < self._recent_turns and kept > (starts[-1] + 1 if starts else 0):
            starts.append(kept - 1)
        afters = [-1, *starts]
        turns = [Turn(_Messages(self._message, range(*span, -1))) for span in zip(starts, afters, strict=False)]
        return History(tuple(reversed(turns)), self._summary, self._model or "")

    def _message(self, position: int) -> Message:
        offset, length = self._offsets[position], self._lengths[position]
        if length > LINE_LIMIT:
            return Message("note", (Text(f"[…message of {length // 1024**2} MB omitted…]"),))
        entry = fields_of(self._descriptor, offset, length)
        if entry is None:
            return Message("note", ())
        return message_of(with_content(entry, self._contents[offset]) if offset in self._contents else entry)


def _model(entry: dict[str, Any]) -> str:
    """Return `provider/id` from a `model_change` or an assistant's message."""
    message = mapping(entry.get("message")) or entry
    provider, model = string(message.get("provider")), string(message.get("model") or message.get("modelId"))
    return f"{provider}/{model}" if provider and model else model


# --- the entries of a session ----------------------------------------------------------------------------------------

LINE_LIMIT = 16 * 1024 * 1024
"""Bytes; a longer line is never decoded."""

_HEAD = re.compile(
    rb'\{"type":"(\w{1,40})","id":"([!#-\[\]-~]{1,100})","parentId":(?:null|"([!#-\[\]-~]{1,100})")'
    rb'(?:,"timestamp":"[!#-\[\]-~]{0,40}")?(?:,"message":\{"role":"(\w{1,40})")?'
)
"""The form of most entries; any other line is parsed."""

_COMPACTION = b'"compaction"'


class SessionEntry(Struct, frozen=True, gc=False):
    """The beginning of a line, and the line's location."""

    type: str
    id: bytes
    """Empty in version 1, which has no tree."""
    parent_id: bytes
    """Empty for a root."""
    role: str
    """A `message`'s role; otherwise empty."""
    offset: int
    length: int


class _Role(Struct):
    role: str = ""


class Header(Struct, rename="camel"):
    """The type of a line in a session file, including the first line."""

    type: str = ""
    id: str = ""
    version: int = 1
    """Set in the first line; version 1 had no number."""
    parent_id: str | None = None
    message: _Role | None = None


decode_header = decoder(Header)


def branch(descriptor: int, size: int, *, is_tree: bool) -> Iterator[SessionEntry]:
    """Yield the branch's entries, the leaf first; lines that are not entries, such as a torn last one, are skipped."""
    expected_id = b""
    has_leaf = False
    for line in lines_backward(descriptor, size):
        entry = _entry(descriptor, line)
        if entry is None or entry.type in ("", "session") or (is_tree and not entry.id):
            continue
        if (has_leaf and is_tree and entry.id != expected_id) or (not has_leaf and _is_torn(descriptor, line)):
            continue
        yield entry
        has_leaf, expected_id = True, entry.parent_id
        if is_tree and not expected_id:
            return


def has_compaction(descriptor: int, end: int) -> bool:
    """Whether the first `end` bytes may contain a compaction, on any branch; a byte search."""
    overlap = len(_COMPACTION)
    return any(
        _COMPACTION in os.pread(descriptor, min(CHUNK + overlap, end - offset), offset)
        for offset in range(0, end, CHUNK)
    )


def fields_of(descriptor: int, offset: int, length: int) -> dict[str, Any] | None:
    """Decode one line; None if it is torn, not an object, or longer than `LINE_LIMIT`."""
    return None if length > LINE_LIMIT else decode(os.pread(descriptor, length, offset))


def _entry(descriptor: int, line: Line) -> SessionEntry | None:
    match = _HEAD.match(line.head)
    if match is None or (match[1] == b"message" and match[4] is None):
        return _parsed(descriptor, line)
    kind, entry_id, parent, role = match.groups(b"")
    return SessionEntry(kind.decode(), entry_id, parent, role.decode(), line.offset, line.length)


def _parsed(descriptor: int, line: Line) -> SessionEntry | None:
    if line.length > LINE_LIMIT:
        return None
    data = os.pread(descriptor, line.length, line.offset)
    try:
        header = decode_header(data)
    except UNDECODABLE:
        try:
            header = fit(decode(data), Header)
        except UNDECODABLE:
            return None
    role = header.message.role if header.message else ""
    return SessionEntry(
        header.type, header.id.encode(), (header.parent_id or "").encode(), role, line.offset, line.length
    )


def _is_torn(descriptor: int, line: Line) -> bool:
    """Whether the line was cut off; checked for a possible leaf."""
    if line.length > LINE_LIMIT:
        return os.pread(descriptor, 1, line.offset + line.length - 1) != b"}"
    return fields_of(descriptor, line.offset, line.length) is None


_NOTES = frozenset({"custom", "hookMessage"})
"""Roles of extension messages; the second is from version 2."""


def message_of(entry: dict[str, Any]) -> Message:
    """Read a `message`, `custom_message` or `branch_summary` entry; the blocks are empty if it means nothing to a
    model.
    """
    match entry.get("type"):
        case "custom_message":
            return Message("note", _blocks(entry.get("content")))
        case "branch_summary":
            return Message("branch summary", _blocks(entry.get("summary")))
        case _:
            return _spoken(mapping(entry.get("message")))


def with_content(entry: dict[str, Any], content: object) -> dict[str, Any]:
    """Return an entry with the content that a `context_edit` gave it."""
    if entry.get("type") == "message":
        return {**entry, "message": {**mapping(entry.get("message")), "content": content}}
    return {**entry, "content": content}


def _spoken(message: dict[str, Any]) -> Message:
    role, content = string(message.get("role")), message.get("content")
    if role == "toolResult":
        output = "\n".join(block.text for block in _blocks(content) if isinstance(block, Text))
        is_error = message.get("isError") is True
        return Message("tool", (ToolOutput(string(message.get("toolName")) or "tool", output, is_error),))
    if role == "bashExecution":
        return Message("user", _own_command(message))
    return Message("note" if role in _NOTES else role, _blocks(content))


def _own_command(message: dict[str, Any]) -> tuple[Block, ...]:
    """Return a command that the user ran from pi's prompt, unless it was hidden from the model."""
    if message.get("excludeFromContext") is True:
        return ()
    failed = message.get("exitCode") not in (0, None)
    return (
        Text(f"Ran `{string(message.get('command'))}`"),
        ToolOutput("bash", string(message.get("output")), failed),
    )


def _blocks(content: object) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(block for item in items(content) if (block := _block(mapping(item))) is not None)


def _block(block: dict[str, Any]) -> Block | None:
    match block.get("type"):
        case "text":
            return Text(string(block.get("text")))
        case "thinking":
            return Thinking(string(block.get("thinking")))
        case "toolCall":
            return ToolUse(string(block.get("name")) or "tool", mapping(block.get("arguments")))
        case "image":
            return Text("[image]")
        case _:
            return None
