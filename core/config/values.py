"""The kinds of values in settings and presets: how each is written, checked and described.

A kind is a type for msgspec, with its bounds in a `Meta`; its `Spelling` says how text becomes a value.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from enum import Enum, EnumType
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from ..errors import ContentError, UsageError
from ..run.enumerations import MOST_SECONDS, WorktreeFrom
from ..run.limits import Unit
from ..text.decoder import UNDECODABLE, fit
from ..text.plain import one_line
from .yaml_tree import Fields, Items, Node, Text


class Spelling(Struct, frozen=True, eq=False):
    """How a value of an annotated type is written."""

    expected: str
    """The expected value, for errors."""
    parse: Callable[[Any], Any] = str.strip
    """Converts the text, or the parts of a list, to the value; raises ValueError. For names it returns the name."""
    schema: dict[str, Any] | None = None
    """JSON Schema for editors, if msgspec's own does not fit."""


class ProjectMay(Enum):
    """What a project's file may do with a key."""

    NOTHING = "nothing"
    OVERRIDES = "overrides"
    ADDS = "adds"
    """Its list or names are added to the user's."""
    LOWERS = "lowers"
    """The lower of the two applies."""


class Setting(Struct, frozen=True):
    """Description of a key for a person, beside its type."""

    about: str
    """`{names}` stands for the names that a value may have."""
    example: str = ""
    """As written in a file; empty for the default."""
    project: ProjectMay = ProjectMay.NOTHING
    names: Callable[[], Sequence[str]] | None = None
    key: str = ""
    """Its group and name in a file, such as `worktree.copy`; empty for the field's own place.

    The field's own place is then an older spelling, which is still read.
    """
    former: tuple[str, ...] = ()
    """Further older spellings, still read."""
    is_rare: bool = False
    """Whether it is missing from the example file."""
    needs_restart: bool = False
    """Whether an open app applies a change only when it starts again."""

    @property
    def meaning(self) -> str:
        return self.about.replace("{names}", ", ".join(self.names())) if self.names else self.about


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
    """Return the rules. Raises ContentError, which says what is wrong with a rule."""
    from ..permissions.rules import checked_rules  # not needed by most files

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
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([smh]?)", text.strip())
    if match is None:
        raise ValueError
    return float(match[1]) * _UNITS[match[2]]


def argv(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command's words, with the `~` of its program expanded. Raises ValueError without a program."""
    if not words or not words[0].strip():
        raise ValueError
    return (os.path.expanduser(words[0]), *words[1:])


def _dollars(text: str) -> float:
    return _number(text.strip().removeprefix("$"))


def _time(words: str, bound: str) -> Spelling:
    """Return the spelling of a time; `bound` is the word of JSON schemas for its bound at 0."""
    number = {"type": "number", bound: 0, "maximum": MOST_SECONDS}
    written = {"type": "string", "pattern": r"^[0-9.]+\s*[smh]?$"}
    return Spelling(f"{words}, at most {MOST_SECONDS / 3600:.0f}h,", _duration, {"anyOf": [number, written]})


MOST_COUNT = 999_999_999
MOST_DOLLARS = 1_000_000
MOST_DAYS = 36_500
MOST_MEGABYTES = 1_000_000_000
MOST_GRACE_S = 24 * 3600

Words = Annotated[str, Spelling("a text")]
Verbatim = Annotated[str, Spelling("a text", str)]
"""With surrounding whitespace."""
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
"""Permission rules, each as for `parse_rule`."""
Begins = Annotated[
    WorktreeFrom,
    Spelling(
        "true, files, head or false",
        _worktree,
        {"enum": [True, False, *map(str, WorktreeFrom)]},
    ),
]
"""Whether there is a worktree, and what it starts from; `true` means the current files."""
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
"""Per million tokens."""
Duration = Annotated[
    float,
    Meta(gt=0, le=MOST_SECONDS),
    _time("a number of seconds above 0, or a time such as 90s, 10m or 2h", "exclusiveMinimum"),
]
"""Seconds; `90`, `90s`, `10m`, `1.5h`."""
DurationOrZero = Annotated[
    float, Meta(ge=0, le=MOST_SECONDS), _time("a number of seconds, or a time such as 5s or 1m", "minimum")
]
OF_UNIT: dict[Unit, Any] = {Unit.SECONDS: Duration, Unit.DOLLARS: Dollars, Unit.COUNT: Count}
"""The kind of a limit's values."""


def read_value(key: str, kind: Any, node: Node) -> Any:
    """Convert the value written for a key. Raises ContentError, which names the key, the expected and the actual
    value.
    """
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
    """Return the JSON Schema of the values that an editor should accept."""
    return _spelling(kind).schema or msgspec.json.schema(kind)


def expected(kind: Any) -> str:
    """Return a description of a kind's values for a person."""
    return _spelling(kind).expected.rstrip(",")


def without_none(hint: Any) -> Any:
    """Return the kind without None: `int` for `int | None`."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    return hint


def is_blank(node: Node) -> bool:
    """Return whether a key's value is blank, so that it counts as absent."""
    return isinstance(node, Text) and (node.is_nothing or not node.value.strip())


def unexpected(key: str, expected: str, node: Node) -> ContentError:
    """Return the error: what was expected, and what was found."""
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
    """Return a kind's annotated spelling; for a set of fixed words, a spelling that accepts them in any case."""
    for note in getattr(kind, "__metadata__", ()):
        if isinstance(note, Spelling):
            return note
    words = [str(member) for member in (kind if isinstance(kind, EnumType) else get_args(kind))]
    *others, last = words
    expected = f"{', '.join(others)} or {last}" if others else last
    return Spelling(expected, lambda text: words[words.index(text.strip().lower())], {"type": "string", "enum": words})


def _parts(key: str, kind: Any, node: Node) -> Any:
    """Return a node's text, items or converted values for a kind. Raises ValueError for another shape."""
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
    """Return an item of a list with several kinds: a text, or a struct with keys."""
    for alternative in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        if isinstance(alternative, type) and issubclass(alternative, Struct):
            if isinstance(node, Fields):
                return _struct(key, alternative, node)
        elif isinstance(node, Text):
            return _of_item(key, alternative, node)
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
