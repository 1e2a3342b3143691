"""The fields of a command's JSON document, by the classes that the command declares."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

import msgspec
from msgspec import Struct, structs
from subdeck.core.cli.output import Output

from . import markdown
from .commands import Explained

PLAIN = {str: "string", bool: "boolean", int: "number", float: "number", NoneType: "null", Any: "any"}
OMITTED = " (optional)"
"""Behind the type of a field that is left out if it has its default."""

Row = tuple[str, str, str]
"""A path such as `runs[].runId`, its types, its description."""


def of(command: Explained) -> object:
    """Return the type of a command's document, from the return annotation of its function; None without one."""
    function: Any = inspect.unwrap(command.command.callback) if command.command.callback else None
    written = getattr(function, "__annotations__", {}).get("return")
    if not isinstance(written, str):
        return None
    returned = eval(written, function.__globals__, _imported_for_types(function.__module__))  # noqa: S307 - our own code
    for member in get_args(returned) if get_origin(returned) in (Union, UnionType) else (returned,):
        if get_origin(member) is Output:
            return get_args(member)[0]
        if get_origin(member) is Annotated:
            return member.__metadata__[0]
    return None


def rows(shape: object) -> list[Row]:
    """Return a row for each field of a document; of several documents, each field once, with all its types."""
    found: dict[str, Row] = {}
    for path, kinds, words in _fields(shape, ""):
        row = f"`{path}`", kinds, markdown.text(words)
        found[path] = _of_both(found[path], row) if path in found else row
    return [row for path, row in found.items() if path]


def _of_both(row: Row, other: Row) -> Row:
    """Return the row of a field that two documents have."""
    kinds, more = (set(each[1].removesuffix(OMITTED).split(" or ")) for each in (row, other))
    if more <= kinds:
        return row
    joined = " or ".join(sorted(kinds | more, key=lambda kind: (kind == "null", kind)))
    omitted = OMITTED if OMITTED in row[1] + other[1] else ""
    return row[0], joined + omitted, " Or: ".join(filter(None, (row[2], other[2])))


def _fields(shape: Any, path: str, words: str = "") -> Iterator[Row]:
    """Yield a field and everything in it."""
    kinds: dict[str, None] = {}
    inside: list[Row] = []
    for member in _members(shape):
        kind, more = _inside(member, path)
        kinds[kind] = None
        inside += more
    yield path, " or ".join(sorted(kinds, key=lambda kind: kind == "null")), words
    yield from inside


def _members(shape: Any) -> list[Any]:
    """Return the members of a union, without what only checks a value."""
    if get_origin(shape) is Annotated and any(isinstance(part, msgspec.Meta) for part in shape.__metadata__):
        shape = get_args(shape)[0]
    if get_origin(shape) in (Union, UnionType):
        return [each for member in get_args(shape) for each in _members(member)]
    return [] if shape is msgspec.UnsetType else [shape]


def _inside(shape: Any, path: str) -> tuple[str, list[Row]]:
    """Return the word for a type that is no union, and the fields of an object or of the members of an array."""
    origin, parts = get_origin(shape), get_args(shape)
    if shape in PLAIN:
        return PLAIN[shape], []
    if origin is Literal:
        return PLAIN[type(parts[0])], []
    if origin is Annotated:
        return "object", _of_merged(shape.__metadata__, path)
    if isinstance(shape, type) and issubclass(shape, Struct):
        return "object", [*_of_struct(shape, path)]
    if isinstance(shape, type) and issubclass(shape, Enum):
        return ("number" if issubclass(shape, int) else "string"), []
    if origin is not None and issubclass(origin, Mapping):
        key, value = parts
        keys = [member.value for member in key] if isinstance(key, type) and issubclass(key, Enum) else ["NAME"]
        return "object", [row for name in keys if value is not Any for row in _fields(value, _below(path, name))]
    if origin is not None and origin is not type:  # a tuple, a list, a sequence
        return "array", [*_fields(parts[0], f"{path}[]")]
    return "object" if shape is dict or is_typeddict(shape) else "any", []


def _of_struct(shape: type[Struct], path: str) -> Iterator[Row]:
    names = dict(zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True))
    described = descriptions(shape)
    for name, kind in _hints(shape).items():
        if name in names:
            first, *inside = _fields(kind, _below(path, names[name]), described.get(name, ""))
            is_omitted = shape.__struct_config__.omit_defaults and name in _with_default(shape)
            yield first[0], first[1] + OMITTED * is_omitted, first[2]
            yield from inside


def _of_merged(parts: tuple[object, ...], path: str) -> list[Row]:
    """Return the fields of objects that are merged into one; `-name` leaves one out.

    A key keeps the place of the first object that has it, and the type of the last one.
    """
    found: dict[str, list[Row]] = {}
    for part in parts:
        if isinstance(part, str):
            found.pop(part.removeprefix("-"))
            continue
        is_nullable = NoneType in get_args(part)
        for row in [row for member in _members(part) if member is not NoneType for row in _of_struct(member, path)]:
            key = row[0].removeprefix(f"{path}.").partition(".")[0].partition("[")[0]
            if row[0] == _below(path, key):
                kinds = f"{row[1]} or null" if is_nullable and "null" not in row[1] else row[1]
                found[key] = [(row[0], kinds, row[2])]
            else:
                found[key].append(row)
    return [row for rows_of_key in found.values() for row in rows_of_key]


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _with_default(shape: type[Struct]) -> set[str]:
    return {field.name for field in structs.fields(shape) if not field.required}


@cache
def _hints(shape: type[Struct]) -> dict[str, Any]:
    """Return the types of all fields, also those that are imported for a type checker only."""
    found: dict[str, Any] = {}
    for base in reversed(shape.__mro__):
        if issubclass(base, Struct):
            globals_, more = vars(sys.modules[base.__module__]), _imported_for_types(base.__module__)
            for name, written in inspect.get_annotations(base).items():
                found[name] = eval(written, globals_, more) if isinstance(written, str) else written  # noqa: S307
    return found


@cache
def _imported_for_types(module: str) -> dict[str, Any]:
    """Return the names that a module imports below `if TYPE_CHECKING`."""
    source = Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    package = "." * line.level + (line.module or "")
                    imported = importlib.import_module(package, module.rpartition(".")[0])
                    found |= {name.asname or name.name: getattr(imported, name.name) for name in line.names}
    return found


@cache
def descriptions(shape: type[Struct]) -> dict[str, str]:
    """Return the strings under the fields of a class for JSON. Those of other records are for developers."""
    found: dict[str, str] = {}
    for base in reversed(shape.__mro__):
        if base.__module__.startswith("subdeck.core.cli.") or base.__name__.endswith("Document"):
            (tree,) = ast.parse(inspect.cleandoc(f"\n{inspect.getsource(base)}")).body
            assert isinstance(tree, ast.ClassDef)
            for field, text in zip(tree.body, tree.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    found[ast.unparse(field.target)] = " ".join(str(ast.literal_eval(text.value)).split())
    return found
