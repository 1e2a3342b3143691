"""One member of a JSON document, put in, replaced or taken out as text: every other byte stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec import Struct

from ..text.decoding import decode
from ._protocol import Fields

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""May stand alone in what programs in JavaScript write; our decoder refuses that."""


class _Member(Struct, frozen=True):
    key: str
    start: int
    value: int
    end: int


class _Object(Struct, frozen=True):
    start: int
    """Where its `{` is."""
    end: int
    """Where its `}` is."""
    members: tuple[_Member, ...]

    def find(self, key: str) -> _Member | None:
        """Return the last member of that name, which is the one that counts."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def read(text: str) -> object:
    """Decode a document. Raises one of UNDECODABLE."""
    return decode(_SURROGATE.sub(r"\\ufffd", text))


def put(text: str, path: Sequence[str], value: Fields) -> str:
    """Return a valid document, which is an object, with this value under a path of keys; what is missing is made."""
    place = _object(text, text.index("{"))
    unit = _indent(text, place) or "  "
    for depth, key in enumerate(path):
        member = place.find(key)
        if member is None:
            return _insert(text, place, path[depth:], value, unit)
        if depth == len(path) - 1:
            written = _written(value, text, place, unit)
            return text[: member.value] + written + text[member.end :]
        place = _object(text, member.value)
    return text


def take(text: str, path: Sequence[str]) -> str:
    """Return a valid document without what is under a path of keys, and blank if nothing else is left of it.

    An object that is emptied by it goes too if there is a blank before its member, as where `put` made it.
    """
    place = _object(text, text.index("{"))
    places: list[tuple[_Object, _Member]] = []
    for key in path:
        member = place.find(key)
        if member is None:
            return text
        places.append((place, member))
        if text[member.value] == "{":
            place = _object(text, member.value)
    while places:
        place, member = places.pop()
        if len(place.members) > 1:
            position = place.members.index(member)
            if position:
                return text[: place.members[position - 1].end] + text[member.end :]
            return text[: member.start] + text[place.members[1].start :]
        if member.start == place.start + 1:
            return text[: member.start] + text[member.end :]
    return ""


def _object(text: str, start: int) -> _Object:
    """Find the members of the object that begins there."""
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


def _insert(text: str, place: _Object, path: Sequence[str], value: Fields, unit: str) -> str:
    """Write a member after the last one, in the manner of the others; below it the rest of the path."""
    for outer in reversed(path[1:]):
        value = {outer: value}
    written = f"{json.dumps(path[0])}: {_written(value, text, place, unit, is_made=len(path) > 1)}"
    if place.members:
        last = place.members[-1]
        before = place.members[-2].end + 1 if len(place.members) > 1 else place.start + 1
        blank = text[before : last.start]
        return f"{text[: last.end]},{blank if blank.isspace() else ' '}{written}{text[last.end :]}"
    return text[: place.start + 1] + written + text[place.start + 1 :]


def _written(value: Fields, text: str, place: _Object, unit: str, *, is_made: bool = False) -> str:
    """Write a value over several lines where its neighbours are, else in one; `is_made` is an object for our member."""
    indent = _indent(text, place)
    if indent is None:
        written = json.dumps(value, ensure_ascii=False)
        return f"{{ {written[1:-1]} }}" if is_made else written
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _indent(text: str, place: _Object) -> str | None:
    """Return by how much the members of an object are indented; None where they stand in its own line."""
    blank = text[place.start + 1 : place.members[0].start] if place.members else ""
    return blank.rpartition("\n")[2] if "\n" in blank else None
