"""A command of the program: its option `--json`, and the one renderer of its result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import click
from msgspec import Struct

from ..errors import UsageError
from ._page import PageCommand
from .output import Output, Piece, is_terminal, render, show


class Document(Struct, frozen=True, rename="camel"):
    """A JSON document, or an object in one: the fields in their order are its keys in camel case.

    `docs/reference/json.md` is made of these classes: the string under a field becomes its description.
    """


def merged(*parts: Struct) -> dict[str, Any]:
    """Return one object with the fields of all; of a field in several parts the last one counts."""
    return {
        key: getattr(part, name)
        for part in parts
        for name, key in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)
    }


def command(
    name: str,
    *examples: str,
    cls: type[PageCommand] = PageCommand,
    json_help: str = "Print one JSON document on stdout.",
    **settings: Any,
) -> Callable[[Callable[..., Any]], PageCommand]:
    """Declare a command that also takes `--json`, with its examples.

    Its function returns an `Output`, or an exit code. The return annotation names the class of the document:
    `Output[Answer]`, or `Annotated[int, Answer]` for a command that prints while it works.
    """

    def declared(function: Callable[..., Any]) -> PageCommand:
        @wraps(function)
        def call(*args: Any, as_json: bool, **options: Any) -> object:
            result = function(*args, **options)
            return render(cast("Output[Any]", result), as_json=as_json) if isinstance(result, Output) else result

        made = click.command(name, cls=cls, **settings)(call)
        made.examples = examples
        return click.option("--json", "as_json", is_flag=True, help=json_help)(made)

    return declared


def is_json() -> bool:
    """Whether the running command was called with `--json`."""
    return bool(click.get_current_context().params["as_json"])


def preface(*pieces: Piece) -> None:
    """Print text that comes before the work, such as a plan; nothing with `--json`."""
    if not is_json():
        show(pieces)


def check_can_ask(where: str, hint: str) -> None:
    """Raise UsageError if the command cannot ask for confirmation."""
    if (as_json := is_json()) or not is_terminal(sys.stdin):
        what = "--json cannot ask for confirmation" if as_json else "confirmation needed but stdin is not a terminal"
        raise UsageError(what, where=where, hint=hint, code="usage.confirmation_required")
