"""The kinds of values that people write into settings and presets: how each is read, and its JSON Schema."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ..errors import ContentError
from ..text.plain import one_line
from .yaml_tree import Fields, Items, Node, Text


class Unexpected(Exception):
    """The value is not what this says in words."""


class Kind(Struct, frozen=True):
    read: Callable[[Node], Any]
    """Raises Unexpected, or ContentError where it has more to say."""
    schema: dict[str, Any]
    """JSON Schema of what an editor should let pass."""


def read_value(key: str, kind: Kind, node: Node) -> Any:
    """Read one value; raise ContentError that names its key, what was expected and what was found."""
    try:
        return kind.read(node)
    except Unexpected as expected:
        raise unexpected(key, str(expected), node) from None


def is_blank(node: Node) -> bool:
    """Whether nothing was written for a key, so that it counts as absent."""
    return isinstance(node, Text) and (node.is_nothing or not node.value.strip())


def unexpected(key: str, expected: str, node: Node) -> ContentError:
    """Word what was expected for a key and what is there instead."""
    match node:
        case Text(value=""):
            found = "nothing"
        case Text(value=value):
            found = f'"{one_line(value, 60)}"'
        case Items():
            found = "a list"
        case Fields():
            found = "keys below it"
    return ContentError(f"{key}: {expected} was expected, found {found}", line=node.line)


def word(node: Node) -> str:
    """The text without the blanks around it; empty for what is no text."""
    return node.value.strip() if isinstance(node, Text) else ""


def _text(node: Node) -> str:
    if not isinstance(node, Text):
        raise Unexpected("a text")
    return node.value.strip()


def _whole_text(node: Node) -> str:
    _text(node)
    return node.value if isinstance(node, Text) else ""


def _texts(node: Node) -> tuple[str, ...]:
    texts = [item.value.strip() for item in node.items if isinstance(item, Text)] if isinstance(node, Items) else []
    if not isinstance(node, Items) or len(texts) != len(node.items) or "" in texts:
        raise Unexpected("a list of texts")
    return tuple(texts)


def _switch(node: Node) -> bool:
    match word(node).lower():
        case "true" | "yes" | "on":
            return True
        case "false" | "no" | "off":
            return False
        case _:
            raise Unexpected("true or false")


def _count(node: Node) -> int:
    value = word(node)
    if not re.fullmatch(r"\+?[0-9]{1,9}", value) or int(value) < 1:
        raise Unexpected("a whole number of at least 1")
    return int(value)


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def _duration(node: Node) -> float:
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([smh]?)", word(node))
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if seconds <= 0:
        raise Unexpected("a number of seconds above 0, or a time like 90s, 10m or 2h,")
    return seconds


def number(words: str, *, zero: bool = False, whole: bool = False, factor: int = 1) -> Kind:
    """A finite number, above 0 or at least 0; one that is whole or was multiplied is read as an int."""

    def read(node: Node) -> float:
        try:
            value = float(word(node))
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero) or (whole and value != int(value)):
            raise Unexpected(words)
        return int(value * factor) if whole or factor != 1 else value

    return Kind(read, {"type": "integer" if whole else "number", "minimum" if zero else "exclusiveMinimum": 0})


def one_of(*words: str) -> Kind:
    """One of a few words, or the member of an enum; case and blanks around it do not matter."""
    expected = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))

    def read(node: Node) -> str:
        value = word(node).lower()
        if value not in words:
            raise Unexpected(expected)
        return words[words.index(value)]

    return Kind(read, {"type": "string", "enum": list(words)})


def matching(pattern: str, words: str) -> Kind:
    """A text that matches a pattern as a whole."""

    def read(node: Node) -> str:
        value = word(node)
        if not re.fullmatch(pattern, value):
            raise Unexpected(words)
        return value

    return Kind(read, {"type": "string", "pattern": f"^(?:{pattern})$"})


NAME = r"[A-Za-z0-9_-]+"

TEXT = Kind(_text, {"type": "string"})
WHOLE_TEXT = Kind(_whole_text, {"type": "string"})
"""With the blanks around it."""
TEXTS = Kind(_texts, {"type": "array", "items": {"type": "string", "minLength": 1}})
SWITCH = Kind(_switch, {"type": "boolean"})
COUNT = Kind(_count, {"type": "integer", "minimum": 1})
DURATION = Kind(
    _duration,
    {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^[0-9.]+\s*[smh]?$"}]},
)
"""Seconds; `90`, `90s`, `10m`, `1.5h`."""
