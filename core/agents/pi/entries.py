"""The entries of a pi session file: its active branch from the leaf to the root, and what each says.

Entries form a tree by `id` and `parentId`; the last line is the leaf. A parent always stands before its children, so
one pass from the end finds the branch, looking at no more than the beginning of each line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ...system.line_file import CHUNK, Line, lines_backward
from ...text.decoding import UNDECODABLE, decoder, fit
from ..conversation import Block, Message, Text, Thinking, ToolOutput, ToolUse
from ..json_lines import decode, items, mapping, string

LINE_LIMIT = 16 * 1024 * 1024
"""Bytes; a longer line is never decoded."""

_HEAD = re.compile(
    rb'\{"type":"(\w{1,40})","id":"([!#-\[\]-~]{1,100})","parentId":(?:null|"([!#-\[\]-~]{1,100})")'
    rb'(?:,"timestamp":"[!#-\[\]-~]{0,40}")?(?:,"message":\{"role":"(\w{1,40})")?'
)
"""As pi writes most entries; any other line is parsed."""

_COMPACTION = b'"compaction"'


class Entry(Struct, frozen=True, gc=False):
    """What the beginning of a line says, and where the line is."""

    type: str
    id: bytes
    """Empty in version 1, which has no tree."""
    parent_id: bytes
    """Empty for a root."""
    role: str
    """Of a `message`; else empty."""
    offset: int
    length: int


class _Role(Struct):
    role: str = ""


class Header(Struct, rename="camel"):
    """What a line of a session file is, the first one included."""

    type: str = ""
    id: str = ""
    version: int = 1
    """Of the first line; pi gave version 1 no number."""
    parent_id: str | None = None
    message: _Role | None = None


decode_header = decoder(Header)


def branch(descriptor: int, size: int, *, is_tree: bool) -> Iterator[Entry]:
    """Yield the entries of the branch, the leaf first; lines that are none, as a torn last one, are passed over."""
    wanted = b""
    has_leaf = False
    for line in lines_backward(descriptor, size):
        entry = _entry(descriptor, line)
        if entry is None or entry.type in ("", "session") or (is_tree and not entry.id):
            continue
        if (has_leaf and is_tree and entry.id != wanted) or (not has_leaf and _is_torn(descriptor, line)):
            continue
        yield entry
        has_leaf, wanted = True, entry.parent_id
        if is_tree and not wanted:
            return


def has_compaction(descriptor: int, end: int) -> bool:
    """Tell whether there may be a compaction in the first `end` bytes, on whichever branch; a search of bytes."""
    overlap = len(_COMPACTION)
    return any(
        _COMPACTION in os.pread(descriptor, min(CHUNK + overlap, end - offset), offset)
        for offset in range(0, end, CHUNK)
    )


def fields_of(descriptor: int, offset: int, length: int) -> dict[str, Any] | None:
    """Decode one line; None when it is torn, no object, or longer than `LINE_LIMIT`."""
    return None if length > LINE_LIMIT else decode(os.pread(descriptor, length, offset))


def _entry(descriptor: int, line: Line) -> Entry | None:
    found = _HEAD.match(line.head)
    if found is None or (found[1] == b"message" and found[4] is None):
        return _parsed(descriptor, line)
    kind, own, parent, role = found.groups(b"")
    return Entry(kind.decode(), own, parent, role.decode(), line.offset, line.length)


def _parsed(descriptor: int, line: Line) -> Entry | None:
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
    return Entry(header.type, header.id.encode(), (header.parent_id or "").encode(), role, line.offset, line.length)


def _is_torn(descriptor: int, line: Line) -> bool:
    """Tell whether the line was cut off; asked of what could be the leaf."""
    if line.length > LINE_LIMIT:
        return os.pread(descriptor, 1, line.offset + line.length - 1) != b"}"
    return fields_of(descriptor, line.offset, line.length) is None


_NOTES = frozenset({"custom", "hookMessage"})
"""Roles of what an extension said; version 2 had the second one."""


def message_of(entry: dict[str, Any]) -> Message:
    """Read a `message`, `custom_message` or `branch_summary` entry; what means nothing to a model has no blocks."""
    match entry.get("type"):
        case "custom_message":
            return Message("note", _blocks(entry.get("content")))
        case "branch_summary":
            return Message("branch summary", _blocks(entry.get("summary")))
        case _:
            return _spoken(mapping(entry.get("message")))


def with_content(entry: dict[str, Any], content: object) -> dict[str, Any]:
    """Return an entry as it is after a `context_edit` gave it other content."""
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
    """Return a command that the user ran from pi's prompt, unless it was kept from the model."""
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
