"""Keep the arguments of a tool call within bounds: a child may hand a whole file, or its whole answer, to a tool."""

from __future__ import annotations

from typing import Any, cast

CUT = "[…truncated…]"
"""Stands at the end of a text that was cut, and for what was left out after it."""

_DEPTH = 32
"""Levels of nesting that are kept."""

_SCALAR = 8
"""Characters that a number, a truth value or an empty collection counts."""


def kept_args(args: dict[str, Any], limit: int) -> dict[str, Any]:
    """Answer the arguments with at most about `limit` characters in all, names included; they are kept in order."""
    kept, _ = _kept(args, limit, _DEPTH)
    return kept


def _kept(value: Any, room: int, depth: int) -> tuple[Any, int]:
    """Answer what is kept of a value, and the room that is left after it."""
    if isinstance(value, str):
        return (value, room - len(value)) if len(value) <= room else (value[: max(0, room)] + CUT, 0)
    if isinstance(value, dict | list) and depth == 0:
        return CUT, room - len(CUT)
    if isinstance(value, dict):
        return _kept_fields(cast("dict[str, Any]", value), room, depth)
    if isinstance(value, list):
        return _kept_items(cast("list[Any]", value), room, depth)
    return value, room - _SCALAR


def _kept_fields(fields: dict[str, Any], room: int, depth: int) -> tuple[dict[str, Any], int]:
    kept: dict[str, Any] = {}
    room -= _SCALAR
    for name, value in fields.items():
        room -= len(name)
        if room <= 0:
            kept["…"] = CUT
            break
        kept[name], room = _kept(value, room, depth - 1)
    return kept, room


def _kept_items(items: list[Any], room: int, depth: int) -> tuple[list[Any], int]:
    kept: list[Any] = []
    room -= _SCALAR
    for item in items:
        if room <= 0:
            kept.append(CUT)
            break
        value, room = _kept(item, room, depth - 1)
        kept.append(value)
    return kept, room
