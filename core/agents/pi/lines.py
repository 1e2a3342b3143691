"""How single lines of pi's JSON mode are read; nothing in a line can make these functions raise."""

from __future__ import annotations

import re
from typing import Any, cast

from msgspec import Struct

from ...run.model import LARGEST
from ...text.decoding import UNDECODABLE, decoder

_KIND = re.compile(rb'\{"type":"(\w{1,40})"(?:,"message":\{"role":"(\w{1,20})")?')
_UPDATE = b'"assistantMessageEvent":{"type":"'
"""Quotes inside JSON strings are escaped, so no text that a model or a tool wrote can look like this."""

UPDATE_HEAD = 4096
"""Bytes of a line that repeats what a later one says whole: more of it is looked at only where its delta is longer."""

UPDATE_MOST = 1024 * 1024
"""Bytes of such a line that are looked at for a long delta."""

_UPDATE_WITHIN = 1024
"""Bytes from the beginning of a line; only the usage of the message, some 300 bytes, may stand before."""

_DELTA = re.compile(
    _UPDATE + rb'text_(?:(start)"|delta","contentIndex":\d{1,9},"delta":"([^"\\]*+(?:\\.[^"\\]*+)*+))', re.DOTALL
)
"""There is no closing quote in the pattern: the delta may be cut anywhere."""

_ERROR_BODY = r"[{\[]"
_NESTED_ERRORS = 3
"""Some providers put the JSON of another one's error into the message of their own."""

# Compiled at their first use, when the child has been started already.
_CUT_ESCAPE = rb"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$"
_ESCAPES = rb"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\(u[dD][89a-fA-F]..)|\\."


class _Kind(Struct):
    type: Any = None
    message: Any = None


class _AgentEnd(Struct, rename="camel"):
    will_retry: Any = None


_decode_kind = decoder(_Kind)
_decode_end = decoder(_AgentEnd)
_decode_text = decoder(str)
_decode_any = decoder(object)


def kind(line: bytes) -> tuple[str, str] | None:
    """Return event type and message role of a line, both maybe empty; None when the line is no JSON object.

    pi writes the keys in a fixed order, so the first bytes tell; only a line that begins otherwise is parsed.
    """
    found = _KIND.match(line)
    if found is not None:
        return found[1].decode(), (found[2] or b"").decode()
    try:
        header = _decode_kind(line)
    except UNDECODABLE:
        return None
    return string(header.type), string(mapping(header.message).get("role"))


def decode(line: bytes) -> dict[str, Any] | None:
    """Decode a whole line; None when it is no JSON object even after repair.

    JavaScript may cut a string inside a surrogate pair; the half that is left makes strict decoders refuse the line.
    """
    for attempt in (line, _repaired):
        try:
            value = _decode_any(attempt if isinstance(attempt, bytes) else attempt(line))
        except UNDECODABLE:
            continue
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None
    return None


def will_retry(line: bytes) -> bool | None:
    """Return what an `agent_end` announces; None before pi 0.75.4, which announces nothing. Messages are skipped."""
    try:
        value = _decode_end(line).will_retry
    except UNDECODABLE:
        value = True if line.endswith(b'"willRetry":true}') else None
    return value if isinstance(value, bool) else None


def update_end(content: bytes, start: int, end: int) -> int:
    """Return where that ends which is looked at of an update line: its head, or its delta where that goes further."""
    if end - start <= UPDATE_HEAD:
        return end
    position = content.find(_UPDATE, start, start + _UPDATE_WITHIN)
    found = _DELTA.match(content, position, min(end, start + UPDATE_MOST)) if position >= 0 else None
    return min(end, max(start + UPDATE_HEAD, found.end() + 1 if found else 0))


def text_delta(head: bytes) -> bytes | None:
    """Return the new text in the head of a `message_update`, as it is escaped there and as much of it as is there;
    nothing when a text block begins, None when the line is about something else.
    """
    position = head.find(_UPDATE, 0, _UPDATE_WITHIN)
    found = _DELTA.match(head, position) if position >= 0 else None
    if found is None:
        return None
    if found[1]:
        return b""
    delta: bytes = found[2]
    if found.end() < len(head):
        return delta
    return re.sub(_CUT_ESCAPE, rb"\1", delta.decode("utf-8", "ignore").encode())


def has_open_delta(head: bytes) -> bool:
    """Tell whether a `message_update` ends within the text that it brings."""
    position = head.find(_UPDATE, 0, _UPDATE_WITHIN)
    found = _DELTA.match(head, position) if position >= 0 else None
    return found is not None and found.end() == len(head)


def unescaped(text: bytes) -> str:
    """Decode the inside of a JSON string; what cannot be decoded is replaced."""
    if b"\\" not in text:
        return text.decode("utf-8", "replace")
    for attempt in (text, _repaired(text)):
        try:
            return _decode_text(b'"' + attempt + b'"')
        except UNDECODABLE:
            continue
    return ""


def _repaired(line: bytes) -> bytes:
    """Put U+FFFD for halves of surrogate pairs and for bytes that are not UTF-8."""
    whole = line.decode("utf-8", "replace").encode()
    return re.sub(_ESCAPES, lambda escape: b"\\ufffd" if escape[1] else escape[0], whole)


def mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """Return a number as a whole one that fits into JSON of ours, not below 0; 0 for everything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(min(max(value, 0), LARGEST))


def amount(value: object) -> float:
    """Return a number of dollars, not below 0, as one that fits; 0 for everything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(min(max(value, 0), LARGEST))


def error_words(text: str) -> str:
    """Return what a provider's error says: of `401: {"message":"Invalid API key",…}`, as pi 1.x hands it on, the words
    `401 Invalid API key`. A text that does not end in such JSON is returned as it is.
    """
    for _ in range(_NESTED_ERRORS):
        begins = re.search(_ERROR_BODY, text)
        if begins is None:
            break
        try:
            message = _error_message(_decode_any(text[begins.start() :]))
        except UNDECODABLE:
            break
        if not message:
            break
        text = " ".join(filter(None, (text[: begins.start()].rstrip(" :"), message)))
    return text


def _error_message(body: object) -> str:
    """Find the message in the forms that providers give their errors; empty where there is none."""
    first = next(iter(items(body)), body)
    values = [value for name in ("message", "error", "detail") if (value := mapping(first).get(name))]
    return next(filter(None, (string(value).strip() or _error_message(value) for value in values)), "")


def joined_text(content: object, limit: int) -> tuple[str, bool]:
    """Join the text blocks of a content list, at most `limit` characters of them; tell whether more was there."""
    if isinstance(content, str):
        return content[:limit], len(content) > limit
    parts: list[str] = []
    for block in items(content):
        fields = mapping(block)
        if fields.get("type") == "text":
            parts.append(string(fields.get("text")))
        elif fields.get("type") == "image":
            parts.append("[image]")
    text = "\n".join(parts)
    return text[:limit], len(text) > limit
