"""Untrusted JSON: for any bytes, decoding gives a value or raises one of `UNDECODABLE`.

No other module decodes JSON: a reader that forgets one of these errors lets a single file end a whole command. Also,
msgspec 0.22 shows an incomplete type to other threads: decoding it then ends the process with a segmentation fault. So
one thread at a time prepares types.
"""

from __future__ import annotations

import _thread  # a wrapper loads no threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

from .plain import one_line

T = TypeVar("T")

UNDECODABLE = (ValueError, RecursionError, OverflowError)
"""Errors of decoding. All errors of msgspec and of encodings are ValueErrors; absurd nesting is not."""

WHY_LENGTH = 200
"""Characters of the clause from `why`."""

_LOCK = _thread.RLock()
_ready: set[Any] = set()


def _make_ready(kind: Any) -> None:
    """Make msgspec know a type and all its parts before a thread decodes it."""
    try:
        if kind in _ready:
            return
    except TypeError:  # some annotations are not hashable
        with _LOCK:
            msgspec.json.Decoder(kind)
        return
    with _LOCK:
        msgspec.json.Decoder(kind)
        _ready.add(kind)


@overload
def decode(content: bytes | str) -> Any: ...
@overload
def decode(content: bytes | str, kind: type[T]) -> T: ...
def decode(content: bytes | str, kind: Any = Any) -> Any:
    """Decode one JSON value, as a type if one is given; raise one of `UNDECODABLE`."""
    _make_ready(kind)
    return msgspec.json.decode(content, type=kind)


def decoded(content: bytes, kind: type[T]) -> T | None:
    """Decode one JSON value; None if it cannot be decoded."""
    try:
        return decode(content, kind)
    except UNDECODABLE:
        return None


def unpack(content: bytes, kind: type[T]) -> T:
    """Decode one value of MessagePack as a type; raise one of `UNDECODABLE`."""
    _make_ready(kind)
    return msgspec.msgpack.decode(content, type=kind)


def decoder(kind: type[T]) -> Callable[[bytes | str], T]:
    """Return `decode` for one type, prepared for many lines: it is msgspec's own method."""
    _make_ready(kind)
    return msgspec.json.Decoder(kind).decode


def fit(value: Any, kind: type[T]) -> T:
    """Return a decoded value as another type; raise one of `UNDECODABLE` if it does not fit."""
    _make_ready(kind)
    return msgspec.convert(value, kind)


def encode_shown(value: object) -> str:
    """Return a decoded value as JSON for the user; a placeholder if it is nested too deeply."""
    try:
        return msgspec.json.encode(value).decode()
    except UNDECODABLE:
        return "[…nested too deeply…]"


def indented(content: bytes) -> str:
    """Format JSON on several lines; raise one of `UNDECODABLE`."""
    return msgspec.json.format(content, indent=2).decode("utf-8", "replace")


def why(error: Exception) -> str:
    """Return a clause for the user on why decoding failed: `not UTF-8 text`."""
    message = str(error)
    if isinstance(error, UnicodeError):
        return "not UTF-8 text"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if "truncated" in message:
        return "invalid JSON (empty or truncated)"
    what, _, where = message.partition(" - at `$")
    if not isinstance(error, msgspec.ValidationError):
        return one_line(f"invalid JSON ({_lowered(what)})", WHY_LENGTH)
    field = where.strip("`.").replace("`", "")
    return one_line(f"{field}: {_lowered(what)}" if field else _lowered(what), WHY_LENGTH)


def _lowered(words: str) -> str:
    words = words.removeprefix("JSON is malformed: ").replace("`", "")
    return words[:1].lower() + words[1:]
