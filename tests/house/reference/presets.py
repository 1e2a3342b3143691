"""`docs/reference/presets.md`: every key of a preset, from the table that reads them."""

from __future__ import annotations

from subdeck.core.config.values import expected
from subdeck.core.presets.fields import FIELDS, preset_schema

from . import markdown


def page() -> str:
    required = preset_schema()["required"]
    rows = [
        (
            f"`{name}`{' (required)' * (name in required)}",
            markdown.text(expected(field.kind)),
            markdown.text(field.meaning),
        )
        for name, field in FIELDS.items()
    ]
    return markdown.page(
        "Preset keys",
        "Look up a key of a preset's frontmatter. `subdeck presets --schema` prints the same as a JSON Schema, for"
        " completion and checks in an editor. `subdeck presets NAME` shows a preset with the values that a run gets.",
        markdown.table(("Key", "Value", "Description"), rows),
    )
