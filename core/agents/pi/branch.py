"""Walk the active branch of a pi session file, from its leaf to its root.

Entries form a tree by `id` and `parentId`; the last line is the leaf. A parent always stands before its children, so
one pass from the end finds the branch, looking at no more than the beginning of each line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from ...system.line_file import CHUNK, Line, lines_backward
from .lines import UNREADABLE, decode

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


class _Header(Struct, rename="camel"):
    type: str = ""
    id: str = ""
    parent_id: str | None = None
    message: _Role | None = None


_decode_header = msgspec.json.Decoder(_Header).decode


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
        header = _decode_header(data)
    except UNREADABLE:
        try:
            header = msgspec.convert(decode(data), _Header)
        except msgspec.ValidationError:
            return None
    role = header.message.role if header.message else ""
    return Entry(header.type, header.id.encode(), (header.parent_id or "").encode(), role, line.offset, line.length)


def _is_torn(descriptor: int, line: Line) -> bool:
    """Tell whether the line was cut off; asked of what could be the leaf."""
    if line.length > LINE_LIMIT:
        return os.pread(descriptor, 1, line.offset + line.length - 1) != b"}"
    return fields_of(descriptor, line.offset, line.length) is None
