"""`subdeck presets`: list the presets and the files that cannot be used, or show one preset."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ..engine import Engine
from ..launch.preview import Preview, preview, tools_words
from ..presets.catalog import Preset, PresetCatalog
from ..presets.fields import preset_schema
from ..run.describe import limits_words, prompt_mode_words
from ..text.plain import one_line, plain
from .options import json_option
from .output import document, say, terminal_width
from .table import Column, table


def preset_document(preset: Preset, view: Preview) -> dict[str, Any]:
    """Return everything about a preset: as written, and below `resolved` as a run would get it."""
    resolved: dict[str, Any] = {
        "agent": view.agent.name if view.agent else None,
        "runner": view.runner,
        "model": view.model.resolved if view.model else None,
        "thinking": view.model.thinking if view.model else None,
        "tools": view.tools,
        "limits": view.limits,
        "maxAttempts": view.max_attempts,
        "warnings": view.warnings,
        "problems": view.problems,
    }
    return {
        "name": preset.name,
        "source": preset.source,
        "path": preset.path,
        "description": preset.description,
        "model": preset.model,
        "thinking": preset.thinking,
        "tools": preset.tools,
        "deniedTools": preset.denied_tools,
        "promptMode": preset.prompt_mode,
        "contextFiles": preset.context_files,
        "inheritContext": preset.inherit_context,
        "finalize": preset.finalize,
        "maxAttempts": preset.max_attempts,
        "sticky": preset.sticky,
        "session": None if preset.keeps_session else "none",
        "agent": preset.agent,
        "runner": preset.runner,
        "limits": preset.limits,
        "warnings": preset.warnings,
        "prompt": preset.prompt,
        "resolved": msgspec.to_builtins(resolved),
    }


def preset_text(preset: Preset, view: Preview) -> str:
    """Return the facts of a preset in lines, then what is wrong, then its prompt."""
    facts = {
        "Name": preset.name,
        "Source": preset.source,
        "File": preset.path,
        "Description": preset.description,
        "Model": _model(preset, view),
        "Thinking": (view.model and view.model.thinking) or preset.thinking,
        "Tools": tools_words(preset, view.tools),
        "Prompt": prompt_mode_words(preset.prompt_mode),
        "Context": _context(preset),
        "Session": "none" if not preset.keeps_session else "sticky" if preset.sticky else None,
        "Finalize": f"yes, asked for {view.max_attempts} times at most" if preset.finalize else None,
        "Limits": limits_words(view.limits),
        "Agent": view.agent.label if view.agent else preset.agent,
        "Runner": view.runner or preset.runner,
    }
    lines = [f"{name + ':':<13}{one_line(value)}" for name, value in facts.items() if value]
    lines += [f"! {one_line(warning)}" for warning in (*preset.warnings, *view.warnings)]
    lines += [f"✗ {one_line(problem)}" for problem in view.problems]
    return "\n".join([*lines, "", plain(preset.prompt).rstrip() or "(no prompt)"])


def _model(preset: Preset, view: Preview) -> str:
    if view.model is None:
        return preset.model or "none: the call or default_model names it"
    resolved = view.model.resolved or "the agent's own default"
    if view.model.source == "default_model":
        return f"{resolved} (default_model)"
    return resolved if preset.model in (None, resolved) else f"{preset.model} → {resolved}"


def _context(preset: Preset) -> str:
    said = [
        "" if preset.context_files is None else f"context files: {'yes' if preset.context_files else 'no'}",
        "" if preset.inherit_context is None else f"parent's: {'yes' if preset.inherit_context else 'no'}",
    ]
    return ", ".join(filter(None, said))


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
@click.option("--schema", is_flag=True, help="Print a JSON Schema of the frontmatter, for use in an editor.")
@json_option
def command(name: str | None, schema: bool, as_json: bool) -> int:
    """List the presets with their source and model, and the files that cannot be used; or show one preset in full, with
    the model, tools and limits that a run would get here.
    """
    if schema:
        document(preset_schema())
        return 0
    engine = Engine.open()
    catalog = engine.presets()
    if name is not None:
        preset = catalog.get(name)
        view = preview(preset, engine.workspace)
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
