"""Read single lines of an agent's JSON; no input can make these functions raise."""

from __future__ import annotations

import re
from typing import Any, cast

from ..run.model import LARGEST
from ..text.decoder import UNDECODABLE, decoder, encode_shown

_ERROR_BODY = r"[{\[]"
_DEEPEST = 100
_NESTED_ERRORS = 3
"""Some providers nest another provider's JSON error in their own message."""

# Compiled on first use, after the agent has started.
_ESCAPES = rb"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\(u[dD][89a-fA-F]..)|\\."

_decode_text = decoder(str)
_decode_any = decoder(object)


def decode(line: bytes) -> dict[str, Any] | None:
    """Decode a whole line; None if it is not a JSON object even after repair.

    JavaScript may cut a string inside a surrogate pair; strict decoders refuse a line with the remaining half.
    """
    for attempt in (line, _repaired):
        try:
            value = _decode_any(attempt if isinstance(attempt, bytes) else attempt(line))
        except UNDECODABLE:
            continue
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None
    return None


def unescaped(text: bytes) -> str:
    """Decode the inside of a JSON string; replace undecodable bytes."""
    if b"\\" not in text:
        return text.decode("utf-8", "replace")
    for attempt in (text, _repaired(text)):
        try:
            return _decode_text(b'"' + attempt + b'"')
        except UNDECODABLE:
            continue
    return ""


def _repaired(line: bytes) -> bytes:
    """Replace halves of surrogate pairs and invalid UTF-8 by U+FFFD."""
    whole = line.decode("utf-8", "replace").encode()
    return re.sub(_ESCAPES, lambda escape: b"\\ufffd" if escape[1] else escape[0], whole)


def mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def shown_json(value: object) -> str:
    """Write arguments as JSON for a user's decision: control characters as they are, not as escapes."""
    return re.sub(r"\\(?:u(00[01][0-9a-f])|([bfr])|.)", _unescaped_control, encode_shown(value))


def _unescaped_control(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return {"b": "\b", "f": "\f", "r": "\r"}[escape[2]] if escape[2] else escape[0]


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def is_deep(value: object) -> bool:
    """Whether a value is nested so deeply that it could be decoded but not encoded."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in (*mapping(outer).values(), *items(outer))]
        if not level:
            return False
    return True


def count(value: object) -> int:
    """Return a number as an integer from 0 to `LARGEST`; 0 for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(min(max(value, 0), LARGEST))


def amount(value: object) -> float:
    """Return a number of dollars from 0 to `LARGEST`; 0 for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(min(max(value, 0), LARGEST))


def error_words(text: str) -> str:
    """Return the message of a provider's error: `401 Invalid API key` for `401: {"message":"Invalid API key",…}`, the
    form of pi 1.x. Return a text without such JSON at its end unchanged.
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
    """Return the message from a provider's error body, in any known form; empty if there is none."""
    first = next(iter(items(body)), body)
    values = [value for name in ("message", "error", "detail") if (value := mapping(first).get(name))]
    return next(filter(None, (string(value).strip() or _error_message(value) for value in values)), "")


def joined_text(content: object, limit: int) -> tuple[str, bool]:
    """Join the text blocks of a content list, up to `limit` characters; also return whether text was cut."""
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
