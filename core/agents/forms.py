"""What a person filled into a form that an agent asked for; nothing in a reply can make this raise."""

from __future__ import annotations

from collections.abc import Sequence

from ..run.events import Field
from .json_lines import decode


def filled_in(text: str, fields: Sequence[Field]) -> dict[str, str]:
    """Read a reply: a JSON object, or lines as `name: value`, or the value itself where there is one field.

    Fields go by their names or titles, in any case; what belongs to none of them is left out.
    """
    names = {written.strip().casefold(): field.name for field in fields for written in (field.title, field.name)}
    if said := decode(text.encode("utf-8", "replace")):
        pairs = [(name, value if isinstance(value, str) else _plainly(value)) for name, value in said.items()]
    else:
        pairs = [(name, value.strip()) for name, colon, value in _lines(text) if colon]
    values = {names[name.strip().casefold()]: value for name, value in pairs if name.strip().casefold() in names}
    return values or ({fields[0].name: text.strip()} if len(fields) == 1 else {})


def _lines(text: str) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in text.splitlines()]


def _plainly(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else ""
