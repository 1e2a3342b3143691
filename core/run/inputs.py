"""Where a call sets a field of a run: a command-line option, and an argument of a parent agent's tools."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Option(Struct, frozen=True):
    """A field's command-line option."""

    flag: str
    metavar: str
    meaning: str
    is_list: bool = False
    """Whether it may be repeated."""


class Argument(Struct, frozen=True):
    """A field's argument in a parent agent's tool call."""

    name: str
    meaning: str
    type: str = "string"
    """JSON type of its values: `string`, `number`, `integer` or `boolean`; `amounts` for an object of numbers."""
    parse: Callable[[Any], Any] = lambda value: value
    """Converts a JSON value to the field's value."""
    is_of_hosts: bool = False
    """Whether it exists only if the operator has hosts."""
