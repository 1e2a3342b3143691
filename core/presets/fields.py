"""The keys of a preset's frontmatter: name, description, and the fields of a run."""

from __future__ import annotations

from typing import Any

from ..config.values import Words, schema_of
from ..spec.fields import Field, table

ALLOWING = ("tools", *table()["tools"].aliases)
"""Synonyms."""
DENYING = "denied_tools"


def _keys() -> dict[str, Field]:
    keys = {
        "name": Field("Name of the preset.", kind=Words),
        "description": Field("One sentence: what the preset is for and when to choose it.", kind=Words),
    }
    for name, field in table().items():
        key = field.key or name
        keys[key] = field
        keys |= {alias: Field(f'The same as "{key}".', kind=field.kind) for alias in field.aliases}
    return keys


FIELDS = _keys()
"""By key, in display order."""


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def preset_schema() -> dict[str, Any]:
    """Return the JSON Schema, built from the same table that presets are read with."""
    exclusive = [*ALLOWING, DENYING]
    pairs = [{"required": [first, second]} for at, first in enumerate(exclusive) for second in exclusive[at + 1 :]]
    in_memory: dict[str, Any] = {"properties": {"session": {"const": "none"}}, "required": ["session"]}
    kept: list[dict[str, Any]] = [
        {"properties": {key: {"const": True}}, "required": [key]} for key in ("sticky", "structured_result")
    ]
    return {
        "$schema": DIALECT,
        "title": "Frontmatter of a subdeck preset",
        "type": "object",
        "properties": {name: {**schema_of(field.kind), "description": field.meaning} for name, field in FIELDS.items()},
        "required": ["name", "description"],
        "additionalProperties": False,
        "allOf": [{"not": {"anyOf": pairs}}, {"not": {**in_memory, "anyOf": kept}}],
    }
