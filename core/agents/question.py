"""An agent's questions to users and their answers; no input can make this raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from ..run.events import Field, Request
from ..run.model import Verdict
from ._json_lines import decode, items, mapping, shown_json, string


class Question(Struct, frozen=True):
    """One question of an agent, with the possible answers in the agent's own form."""

    request: Request
    denied: Any
    """Also used if a reply does not fit."""
    allowed: Any = None
    """Allows one call: "allow for the run" is a rule of the wrapper, which then decides each call. None if the request
    cannot be allowed.
    """
    filled: Callable[[str], Any] | None = None
    """Converts a reply to an answer; returns None if the reply does not fit."""
    explained: Callable[[str], Any] | None = None
    """Returns a denial with its reason; None if the agent accepts no reason."""
    own_id: Any = None
    """The agent's id; None if it equals the request's id."""
    turn: str = ""
    """The turn of the question, if the agent reports it."""

    def answer(self, verdict: Verdict, text: str) -> Any:
        """Return the answer for the agent."""
        chosen = None
        if verdict in (Verdict.ALLOW, Verdict.ALLOW_RUN):
            chosen = self.allowed
        elif verdict is Verdict.REPLY and self.filled:
            chosen = self.filled(text)
        if chosen is None:
            reason = text.strip()
            chosen = self.explained(reason) if self.explained and reason else self.denied
        return chosen


def joined(*parts: str) -> str:
    """Join the texts of a request with blank lines."""
    return "\n\n".join(filter(str.strip, parts))


# --- forms and their replies ---


def filled_in(text: str, fields: Sequence[Field]) -> dict[str, str]:
    """Parse a reply: a JSON object, lines as `name: value`, or the value itself if there is one field.

    Fields match by name or title, ignoring case; unknown names are dropped.
    """
    names = {written.strip().casefold(): field.name for field in fields for written in (field.title, field.name)}
    if reply := decode(text.encode("utf-8", "replace")):
        pairs = [(name, value if isinstance(value, str) else _plainly(value)) for name, value in reply.items()]
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


# --- forms with a JSON schema, from MCP servers ---


def fields_of(schema: dict[str, Any]) -> tuple[Field, ...]:
    """Return the fields of a form, which is an object with flat properties in these protocols."""
    required = items(schema.get("required"))
    properties = mapping(schema.get("properties"))
    return tuple(_field(name, mapping(field), name in required) for name, field in properties.items())


def content_of(text: str, schema: dict[str, Any]) -> dict[str, object]:
    """Parse a reply by the schema's types."""
    types = {name: mapping(field).get("type") for name, field in mapping(schema.get("properties")).items()}
    return {name: _typed(value, types.get(name)) for name, value in filled_in(text, fields_of(schema)).items()}


def _field(name: str, schema: dict[str, Any], required: bool) -> Field:
    return Field(
        name=name,
        title=string(schema.get("title")),
        text=string(schema.get("description")),
        choices=("true", "false") if schema.get("type") == "boolean" else _choices(schema),
        required=required,
    )


def _choices(schema: dict[str, Any]) -> tuple[str, ...]:
    """Return the values of a single or multiple choice."""
    values: list[object] = []
    for each in (schema, mapping(schema.get("items"))):
        values += items(each.get("enum"))
        values += (mapping(named).get("const") for name in ("oneOf", "anyOf") for named in items(each.get(name)))
    return tuple(value if isinstance(value, str) else shown_json(value) for value in values)


def _typed(value: str, type_: object) -> object:
    """Convert a value to its type; keep it as text if that fails."""
    try:
        match type_:
            case "boolean":
                return value.strip().casefold() in ("true", "yes", "y", "1")
            case "integer":
                return int(value)
            case "number":
                return float(value)
            case "array":
                return [part.strip() for part in value.split(",")]
            case _:
                return value
    except ValueError:
        return value
