"""Insert, replace or remove one member of a JSON document as text; every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec import Struct

from ..text.decoder import decode
from ._protocol import Fields

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""A lone surrogate, which JavaScript programs may write and subdeck's decoder refuses."""


class _Member(Struct, frozen=True):
    key: str
    start: int
    value: int
    end: int


class _Object(Struct, frozen=True):
    start: int
    """Position of its `{`."""
    end: int
    """Position of its `}`."""
    members: tuple[_Member, ...]

    def find(self, key: str) -> _Member | None:
        """Return the last member with this name, which is the effective one."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def read(text: str) -> object:
    """Decode a document. Raises one of UNDECODABLE."""
    return decode(_SURROGATE.sub(r"\\ufffd", text))


def put(text: str, path: Sequence[str], value: Fields) -> str:
    """Return a valid document (an object) with this value at a path of keys; creates missing objects."""
    container = _object(text, text.index("{"))
    unit = _indent(text, container) or "  "
    for depth, key in enumerate(path):
        member = container.find(key)
        if member is None:
            return _insert(text, container, path[depth:], value, unit)
        if depth == len(path) - 1:
            written = _written(value, text, container, unit)
            return text[: member.value] + written + text[member.end :]
        container = _object(text, member.value)
    return text


def take(text: str, path: Sequence[str]) -> str:
    """Return a valid document without the member at a path of keys; an empty text if nothing else remains.

    An object that becomes empty is also removed, if there is whitespace before its member, as in objects that `put`
    created.
    """
    container = _object(text, text.index("{"))
    containers: list[tuple[_Object, _Member]] = []
    for key in path:
        member = container.find(key)
        if member is None:
            return text
        containers.append((container, member))
        if text[member.value] == "{":
            container = _object(text, member.value)
    while containers:
        container, member = containers.pop()
        if len(container.members) > 1:
            position = container.members.index(member)
            if position:
                return text[: container.members[position - 1].end] + text[member.end :]
            return text[: member.start] + text[container.members[1].start :]
        if member.start == container.start + 1:
            return text[: member.start] + text[member.end :]
    return ""


def _object(text: str, start: int) -> _Object:
    """Find the members of the object that begins at `start`."""
    members: list[_Member] = []
    key: re.Match[str] | None = None
    value, last, depth = -1, start, 0
    for token in _TOKEN.finditer(text, start):
        sign = token[0]
        if depth == 1 and sign in (",", "}"):
            if key is not None:
                members.append(_Member(str(read(key[0])), key.start(), value, last))
            key, value = None, -1
        elif depth == 1 and key is None:
            key = token
        elif depth == 1 and sign != ":" and value < 0:
            value = token.start()
        depth += (sign in "{[") - (sign in "}]") if len(sign) == 1 else 0
        if not depth:
            return _Object(start, token.start(), tuple(members))
        last = token.end()
    raise ValueError("the object does not end")


def _insert(text: str, container: _Object, path: Sequence[str], value: Fields, unit: str) -> str:
    """Insert a member after the last one, in the same layout, with the rest of the path inside it."""
    for outer in reversed(path[1:]):
        value = {outer: value}
    written = f"{json.dumps(path[0])}: {_written(value, text, container, unit, is_made=len(path) > 1)}"
    if container.members:
        last = container.members[-1]
        before = container.members[-2].end + 1 if len(container.members) > 1 else container.start + 1
        blank = text[before : last.start]
        return f"{text[: last.end]},{blank if blank.isspace() else ' '}{written}{text[last.end :]}"
    return text[: container.start + 1] + written + text[container.start + 1 :]


def _written(value: Fields, text: str, container: _Object, unit: str, *, is_made: bool = False) -> str:
    """Write a value on several lines if its neighbours are, otherwise on one; `is_made`: an object created for the
    path.
    """
    indent = _indent(text, container)
    if indent is None:
        written = json.dumps(value, ensure_ascii=False)
        return f"{{ {written[1:-1]} }}" if is_made else written
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _indent(text: str, container: _Object) -> str | None:
    """Return the indentation of an object's members; None if they are on the line of its brace."""
    blank = text[container.start + 1 : container.members[0].start] if container.members else ""
    return blank.rpartition("\n")[2] if "\n" in blank else None
