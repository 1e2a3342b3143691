"""The frontmatter of presets as a JSON Schema, for editors that complete and check YAML."""

from __future__ import annotations

from typing import Any

from .fields import ALLOWING, DENYING, FIELDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def preset_schema() -> dict[str, Any]:
    """Answer the schema, made from the table that the presets are read by."""
    exclusive = [*ALLOWING, DENYING]
    pairs = [{"required": [first, second]} for at, first in enumerate(exclusive) for second in exclusive[at + 1 :]]
    in_memory: dict[str, Any] = {"properties": {"session": {"const": "none"}}, "required": ["session"]}
    kept: list[dict[str, Any]] = [
        {"properties": {key: {"const": True}}, "required": [key]} for key in ("sticky", "finalize")
    ]
    return {
        "$schema": DIALECT,
        "title": "Frontmatter of a subdeck preset",
        "type": "object",
        "properties": {name: {**field.kind.schema, "description": field.meaning} for name, field in FIELDS.items()},
        "required": ["name", "description"],
        "additionalProperties": False,
        "allOf": [{"not": {"anyOf": pairs}}, {"not": {**in_memory, "anyOf": kept}}],
    }
