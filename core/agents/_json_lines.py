"""How single lines of a child's JSON are read; nothing in a line can make these functions raise."""

from __future__ import annotations

import re
from typing import Any, cast

from ..run.model import LARGEST
from ..text.decoding import UNDECODABLE, decoder, encode_shown

_ERROR_BODY = r"[{\[]"
_DEEPEST = 100
_NESTED_ERRORS = 3
"""Some providers put the JSON of another one's error into the message of their own."""

# Compiled at its first use, when the child has been started already.
_ESCAPES = rb"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\(u[dD][89a-fA-F]..)|\\."

_decode_text = decoder(str)
_decode_any = decoder(object)


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


def shown_json(value: object) -> str:
    """Write arguments as JSON for somebody who decides on them: control characters as they are, not as escapes."""
    return re.sub(r"\\(?:u(00[01][0-9a-f])|([bfr])|.)", _unescaped_control, encode_shown(value))


def _unescaped_control(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return {"b": "\b", "f": "\f", "r": "\r"}[escape[2]] if escape[2] else escape[0]


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def is_deep(value: object) -> bool:
    """Tell whether something is nested so absurdly that it could be read, and cannot be written."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in (*mapping(outer).values(), *items(outer))]
        if not level:
            return False
    return True


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
