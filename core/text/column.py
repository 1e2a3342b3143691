"""A column of a table of rows, on a screen or printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

Row = TypeVar("Row")


class Column(Struct, frozen=True, eq=False):
    most: int
    """Maximum width in cells."""
    least: int = 0
    """Cells it keeps when there is too little room; 0 for a column that is never narrowed."""
    right: bool = False
    """Whether its texts end at the same cell."""


class TextColumn(Column, Generic[Row], frozen=True, eq=False, kw_only=True):
    """A column that makes its texts."""

    heading: str = ""
    text: Callable[[Row], str]
