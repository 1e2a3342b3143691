"""The kinds of values that people write into settings and presets: how each is spelled, checked and described.

A kind is a type as msgspec knows it, its bounds in a `Meta`; a `Spelling` in it says how text becomes such a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from enum import Enum, EnumType
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from ..errors import ContentError, UsageError
from ..run.kinds import MOST_SECONDS, WorktreeFrom
from ..text.decoding import UNDECODABLE, fit
from ..text.plain import one_line
from .yaml_tree import Fields, Items, Node, Text


class Spelling(Struct, frozen=True, eq=False):
    """How a value of an annotated type is written."""

    expected: str
    """For an error: what should have been there."""
    parse: Callable[[Any], Any] = str.strip
    """Makes the value of the text, or of the parts of a list; raises ValueError. For names it makes the name."""
    schema: dict[str, Any] | None = None
    """JSON Schema for editors, where msgspec's own does not say it."""


class ProjectMay(Enum):
    """What the project's file may do with a key."""

    NOTHING = "nothing"
    OVERRIDES = "overrides"
    ADDS = "adds"
    """Its list or its names go with the user's."""
    LOWERS = "lowers"
    """The lower of the two counts."""


class Setting(Struct, frozen=True):
    """What a person is told of a key beside its type."""

    meaning: str
    example: str = ""
    """As it is written in a file; empty stands for the default."""
    project: ProjectMay = ProjectMay.NOTHING


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _whole(text: str) -> int:
    if not re.fullmatch(r"\+?[0-9]{1,9}", text.strip()):
        raise ValueError
    return int(text)


def _rules(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the rules. Raises ContentError that says what is wrong with one."""
    from ..permissions.rules import checked_rules  # which most files do not need

    try:
        return checked_rules(texts)
    except UsageError as error:
        raise ContentError(error.what, hint=error.hint) from error


_SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


_WORKTREE = {word: WorktreeFrom.FILES if switch else WorktreeFrom.NONE for word, switch in _SWITCH.items()} | {
    str(begins): begins for begins in WorktreeFrom
}


def _worktree(text: str) -> WorktreeFrom:
    if text.strip().lower() not in _WORKTREE:
        raise ValueError
    return _WORKTREE[text.strip().lower()]


def _switch(text: str) -> bool:
    if text.strip().lower() not in _SWITCH:
        raise ValueError
    return _SWITCH[text.strip().lower()]


def _duration(text: str) -> float:
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([smh]?)", text.strip())
    if found is None:
        raise ValueError
    return float(found[1]) * _UNITS[found[2]]


def _dollars(text: str) -> float:
    return _number(text.strip().removeprefix("$"))


MOST_COUNT = 999_999_999
MOST_DOLLARS = 1_000_000
MOST_DAYS = 36_500
MOST_MEGABYTES = 1_000_000_000
MOST_GRACE_S = 24 * 3600

Words = Annotated[str, Spelling("a text")]
Verbatim = Annotated[str, Spelling("a text", str)]
"""With the blanks around it."""
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+$"), Spelling("letters, digits, _ and -")]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), Spelling("letters, digits and _", str.strip)]
Texts = Annotated[
    tuple[Annotated[str, Meta(min_length=1), Spelling("a text")], ...], Spelling("a list of texts", tuple)
]
Rules = Annotated[
    tuple[Annotated[str, Meta(min_length=1), Spelling("a rule")], ...],
    Spelling(
        "a list of rules, such as [bash(git *), edit(src/**), read]",
        _rules,
        {"type": "array", "items": {"type": "string"}},
    ),
]
"""Of permissions, each as `parse_rule` reads it."""
Begins = Annotated[
    WorktreeFrom,
    Spelling(
        "true, files, head or false",
        _worktree,
        {"enum": [True, False, *map(str, WorktreeFrom)]},
    ),
]
"""Whether there is a worktree, and what it begins with; `true` is the files as they are."""
Switch = Annotated[bool, Spelling("true or false", _switch)]
Count = Annotated[int, Meta(ge=1, le=MOST_COUNT), Spelling(f"a whole number from 1 to {MOST_COUNT:,}", _whole)]
CountOrZero = Annotated[int, Meta(ge=0, le=MOST_COUNT), Spelling(f"a whole number up to {MOST_COUNT:,}", _whole)]
Seconds = Annotated[
    float, Meta(ge=0, le=MOST_GRACE_S), Spelling(f"a number of seconds from 0 to {MOST_GRACE_S:,}", _number)
]
Days = Annotated[
    float, Meta(gt=0, le=MOST_DAYS), Spelling(f"a number of days above 0, at most {MOST_DAYS:,},", _number)
]
Megabytes = Annotated[
    float,
    Meta(gt=0, le=MOST_MEGABYTES),
    Spelling(f"a number of megabytes above 0, at most {MOST_MEGABYTES:,},", _number),
]
Dollars = Annotated[
    float,
    Meta(gt=0, le=MOST_DOLLARS),
    Spelling(f"dollars such as 0.50, above 0 and at most {MOST_DOLLARS:,},", _dollars),
]
PriceOfTokens = Annotated[float, Meta(ge=0, le=MOST_DOLLARS), Spelling(f"dollars from 0 to {MOST_DOLLARS:,}", _dollars)]
"""Per million."""
Duration = Annotated[
    float,
    Meta(gt=0, le=MOST_SECONDS),
    Spelling(
        f"a number of seconds above 0, or a time such as 90s, 10m or 2h, at most {MOST_SECONDS / 3600:.0f}h,",
        _duration,
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_SECONDS},
                {"type": "string", "pattern": r"^[0-9.]+\s*[smh]?$"},
            ]
        },
    ),
]
"""Seconds; `90`, `90s`, `10m`, `1.5h`."""


def read_value(key: str, kind: Any, node: Node) -> Any:
    """Convert what was written for a key; raise ContentError that names it, what was expected and what was found."""
    spelling = _spelling(kind)
    try:
        return fit(spelling.parse(_parts(key, kind, node)), kind)
    except UNDECODABLE:
        raise unexpected(key, spelling.expected, node) from None
    except ContentError as error:
        if error.line is not None:
            raise
        raise ContentError(f"{key}: {error.what}", line=node.line, hint=error.hint) from error


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of what an editor should let pass."""
    return _spelling(kind).schema or msgspec.json.schema(kind)


def expected(kind: Any) -> str:
    """Return what a value of a kind looks like, in words for a person."""
    return _spelling(kind).expected.rstrip(",")


def without_none(hint: Any) -> Any:
    """Return the kind of a field's values that are there: `int` for `int | None`."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    return hint


def is_blank(node: Node) -> bool:
    """Whether nothing was written for a key, so that it counts as absent."""
    return isinstance(node, Text) and (node.is_nothing or not node.value.strip())


def unexpected(key: str, expected: str, node: Node) -> ContentError:
    """Say what was expected for a key and what is there instead."""
    match node:
        case Text(value=""):
            found = "nothing"
        case Text(value=value):
            found = f'"{one_line(value, 60)}"'
        case Items():
            found = "a list"
        case Fields():
            found = "keys below it"
    return ContentError(f"{key}: expected {expected} but found {found}", line=node.line)


def _spelling(kind: Any) -> Spelling:
    """Return the one that a kind was annotated with; of a few fixed words, those words in any case."""
    for note in getattr(kind, "__metadata__", ()):
        if isinstance(note, Spelling):
            return note
    words = [str(member) for member in (kind if isinstance(kind, EnumType) else get_args(kind))]
    *others, last = words
    expected = f"{', '.join(others)} or {last}" if others else last
    return Spelling(expected, lambda text: words[words.index(text.strip().lower())], {"type": "string", "enum": words})


def _parts(key: str, kind: Any, node: Node) -> Any:
    """Return the text, the items or the converted values that a node has for a kind; ValueError for another shape."""
    base = get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
    shape = get_origin(base) or base
    match node:
        case Fields() if shape is dict:
            name, value = get_args(base)
            return _mapping(key, name, value, node)
        case Fields() if isinstance(shape, type) and issubclass(shape, Struct):
            return _struct(key, shape, node)
        case Items() if shape is tuple:
            (item, _) = get_args(base)
            return [_item(key, item, part) for part in node.items]
        case Text() if shape in (str, int, float, bool, Literal) or isinstance(shape, EnumType):
            return node.value
        case _:
            raise ValueError


def _item(key: str, kind: Any, node: Node) -> Any:
    """Return one part of a list, which may be of several kinds: a text, or a struct with its keys below it."""
    for one in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        if isinstance(one, type) and issubclass(one, Struct):
            if isinstance(node, Fields):
                return _struct(key, one, node)
        elif isinstance(node, Text):
            return _of_item(key, one, node)
    raise ValueError


def _of_item(key: str, kind: Any, node: Text) -> Any:
    try:
        return _spelling(kind).parse(node.value)
    except ContentError as error:
        raise ContentError(f"{key}: {error.what}", line=node.line, hint=error.hint) from error


def _mapping(key: str, name_kind: Any, value_kind: Any, node: Fields) -> dict[str, Any]:
    values: dict[str, Any] = {}
    spelling = _spelling(name_kind)
    for written, child in node.pairs.items():
        try:
            name = spelling.parse(written)
        except ContentError as error:
            raise ContentError(f"{key}: {error.what}", line=child.line, hint=error.hint) from error
        try:
            fit(name, name_kind)
        except UNDECODABLE:
            what = f'{key}: invalid name "{one_line(written, 60)}": use only {spelling.expected}'
            raise ContentError(what, line=child.line) from None
        if name in values:
            raise ContentError(f'{key}: "{name}" appears twice', line=child.line)
        values[name] = read_value(f"{key}.{written}", value_kind, child)
    return values


def _struct(key: str, struct: type[Struct], node: Fields) -> dict[str, Any]:
    kinds = struct.__annotations__
    for name, child in node.pairs.items():
        if name not in kinds:
            hint = f"known here: {', '.join(kinds)}"
            raise ContentError(f'"{key}.{name}" is not a setting', line=child.line, hint=hint)
    return {name: read_value(f"{key}.{name}", without_none(kinds[name]), child) for name, child in node.pairs.items()}
