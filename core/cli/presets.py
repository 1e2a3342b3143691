"""`subdeck presets`: what can be launched, and what is wrong with the files that cannot."""

from __future__ import annotations

from typing import Any

import click

from ..engine import Engine
from ..launch.preview import preview
from ..presets.catalog import Preset, PresetCatalog
from ..presets.preset_schema import preset_schema
from ..text.plain import one_line
from .options import json_option
from .output import document, say, terminal_width
from .preset_view_part import preset_document, preset_text
from .table import Column, table

COLUMNS = (Column(40, least=12), Column(8), Column(40, least=8), Column(200, least=16))

EMPTY = """\
No presets yet. Write one:

  mkdir -p .pi/subagents
  cat > .pi/subagents/repo-scout.md <<'END'
  ---
  name: repo-scout
  description: Finds where something is done in this repository
  tools: read, grep, find, ls
  ---
  Answer with file:line evidence.
  END

Looked for *.md in:
{places}"""


@click.command("presets")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--schema", is_flag=True, help="Print a JSON Schema of the frontmatter, for editors.")
@json_option
def command(name: str | None, schema: bool, as_json: bool) -> int:
    """List the presets with their source and model, and the files that cannot be used; or show one preset whole, with
    what its model, tools and limits come to here."""
    if schema:
        document(preset_schema())
        return 0
    engine = Engine.open()
    catalog = engine.presets()
    if name is not None:
        preset = catalog.get(name)
        view = preview(name, project=engine.project, cwd=engine.cwd, settings=engine.settings)
        if as_json:
            document({"presets": [preset_document(preset, view)], "problems": []})
        else:
            say(preset_text(preset, view))
    elif as_json:
        problems = [{"path": problem.where, "message": problem.message} for problem in catalog.problems]
        document({"presets": [_fields(preset) for preset in catalog.presets], "problems": problems})
    else:
        say(_listed(catalog))
    return 0


def _fields(preset: Preset) -> dict[str, Any]:
    return {
        "name": preset.name,
        "source": preset.source,
        "path": preset.path,
        "description": preset.description,
        "model": preset.model,
        "tools": preset.tools,
        "warnings": preset.warnings,
    }


def _listed(catalog: PresetCatalog) -> str:
    if not catalog.presets and not catalog.problems:
        return EMPTY.format(places="\n".join(f"  {one_line(place)}" for place in catalog.places))
    cells = [(preset.name, preset.source, preset.model or "–", preset.description) for preset in catalog.presets]
    lines = table(COLUMNS, cells, terminal_width())
    lines += [f"! {one_line(preset.name)}: {one_line(text)}" for preset in catalog.presets for text in preset.warnings]
    lines += [f"✗ {one_line(problem.where)}: {one_line(problem.message)}" for problem in catalog.problems]
    return "\n".join(lines)
