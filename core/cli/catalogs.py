"""`subdeck presets` and `models`: list what a run can name, or show one preset."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from .. import paths
from ..agents.agent import AgentChoice
from ..agents.choice import catalog_of, installed_agents, model_list
from ..agents.model_list import TIMEOUT_S, KeptList, not_saved
from ..agents.offered import AgentModels, context_words, due, models_of, price_words
from ..config.host_settings import needs_words
from ..config.settings import Settings
from ..engine import Engine
from ..errors import AgentUnavailable, ModelError, UsageError
from ..launch.model import resolve_model
from ..launch.preview import Obstacle, Preview, obstacles, preview, tools_words
from ..models.catalog import INHERIT, Catalog, Model
from ..models.resolvers import provider_roles
from ..presets.catalog import Preset, PresetCatalog
from ..presets.fields import preset_schema
from ..run.describe import limits_words, permissions_words, prompt_mode_words
from ..spec.layers import origin_words
from ..text.column import Column
from ..text.plain import one_line, plain
from ._options import json_option
from ._table import table
from .output import document, note, say, terminal_width

MARK_COLUMN = Column(1)
"""Marks presets that cannot start; only if there are any."""
PRESET_COLUMNS = (Column(40, least=12), Column(8), Column(40, least=8), Column(200, least=16))
_INDENT = "  "
PATIENCE_S = 10.0
"""How long an agent that is due may keep somebody waiting who only wants to look."""

MODEL_COLUMNS = (Column(120, least=24), Column(8, right=True), Column(16), Column(8), Column(80, least=8))
ROLE_COLUMNS = (Column(40, least=8), Column(120, least=24), Column(200, least=16))

LISTED_FIELDS = ("name", "source", "path", "form", "description", "model", "tools", "warnings")
SHOWN_FIELDS = (
    *("name", "source", "path", "form", "description", "model", "thinking", "tools", "denied_tools", "prompt_mode"),
    *(
        "context_files",
        "project_resources",
        "inherit_context",
        "finalize",
        "max_attempts",
        "sticky",
        "agent",
        "runner",
        "host",
        "needs",
        "limits",
        "talk",
        "permissions",
        "answer_timeout",
        "idle_timeout",
    ),
    *("warnings", "prompt"),
)

_ATTRIBUTES = {"finalize": "structured_result", "talk": "interactive", "answer_timeout": "reply_timeout"}
"""Fields whose name in JSON is an older one."""

EMPTY = """\
No presets yet. subdeck init writes four starter presets. Or write one yourself:

  mkdir -p .pi/subagents
  cat > .pi/subagents/repo-scout.md <<'END'
  ---
  name: repo-scout
  description: Finds where something is done in this repository
  tools: read, grep, find, ls
  ---
  Answer with file:line evidence.
  END

Looked for {patterns} in:
{places}"""


@click.command("presets")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--schema", is_flag=True, help="Print a JSON Schema of the frontmatter, for use in an editor.")
@json_option
def presets(name: str | None, schema: bool, as_json: bool) -> None:
    """List the presets with their source and model. ✗ marks a preset that cannot start here, and the reason follows.
    Files that cannot be used are listed after the presets.

    With NAME, show one preset in full, with the model, tools and limits that a run would get here.
    """
    if schema:
        document(preset_schema())
        return
    engine = Engine.open()
    catalog = engine.presets()
    if name is not None:
        preset = catalog.get(name)
        view = preview(preset, engine.workspace)
        if as_json:
            document({"presets": [preset_document(preset, view)], "problems": []})
        else:
            say(_preset_text(preset, view))
    elif as_json:
        stopped = obstacles(catalog.presets, engine.workspace)
        problems = [{"path": problem.where, "message": problem.message} for problem in catalog.problems]
        listed = [
            _fields(preset, LISTED_FIELDS) | {"cannotStart": [reason.words for reason in stopped.get(preset.name, ())]}
            for preset in catalog.presets
        ]
        document({"presets": listed, "problems": problems})
    else:
        say(_listed(catalog, obstacles(catalog.presets, engine.workspace)))


def _listed(catalog: PresetCatalog, stopped: Mapping[str, Sequence[Obstacle]]) -> str:
    if not catalog.presets and not catalog.problems:
        return EMPTY.format(
            patterns=catalog.patterns, places="\n".join(f"  {one_line(place)}" for place in catalog.places)
        )
    cells = [
        ("✗" * (preset.name in stopped), preset.name, preset.source, preset.model or "–", preset.description)
        for preset in catalog.presets
    ]
    columns = (MARK_COLUMN, *PRESET_COLUMNS)
    if not stopped:
        columns, cells = PRESET_COLUMNS, [row[1:] for row in cells]
    lines = table(columns, cells, terminal_width())
    for name, reasons in stopped.items():
        more = f" (and {len(reasons) - 1} more: subdeck presets {one_line(name)})" if len(reasons) > 1 else ""
        lines.append(f"✗ {one_line(name)} cannot start: {reasons[0].words}{more}")
    lines += [f"! {one_line(preset.name)}: {one_line(text)}" for preset in catalog.presets for text in preset.warnings]
    lines += [f"✗ {one_line(problem.where)}: {one_line(problem.message)}" for problem in catalog.problems]
    return "\n".join(lines)


def preset_document(preset: Preset, view: Preview) -> dict[str, Any]:
    """Return everything about a preset: as written, and below `resolved` as a run would get it."""
    resolved = {
        "agent": view.agent.name if view.agent else None,
        "runner": view.runner,
        "model": view.model.resolved if view.model else None,
        "thinking": view.model.thinking if view.model else None,
        "tools": view.tools,
        "limits": view.limits,
        "permissions": view.permissions,
        "talk": view.talk,
        "maxAttempts": view.max_attempts,
        "decidedBy": view.decided_by,
        "warnings": view.warnings,
        "problems": view.problems,
    }
    session = None if preset.keeps_session else "none"
    return {**_fields(preset, SHOWN_FIELDS), "session": session, "resolved": msgspec.to_builtins(resolved)}


def _fields(preset: Preset, names: Sequence[str]) -> dict[str, Any]:
    return {
        re.sub("_(.)", lambda found: found[1].upper(), name): getattr(preset, _ATTRIBUTES.get(name, name))
        for name in names
    }


def _preset_text(preset: Preset, view: Preview) -> str:
    facts = {
        "Name": preset.name,
        "Source": preset.source,
        "File": preset.path,
        "Form": f"an agent file of {preset.form}" if preset.form else None,
        "Description": preset.description,
        "Model": _model(preset, view),
        "Thinking": (view.model and view.model.thinking) or preset.thinking,
        "Tools": tools_words(preset, view.tools),
        "Prompt": prompt_mode_words(preset.prompt_mode),
        "Context": _context(preset),
        "Session": "none" if not preset.keeps_session else "sticky" if preset.sticky else None,
        "Structured": f"yes, at most {view.max_attempts} attempts" if preset.structured_result else None,
        "Limits": limits_words(view.limits),
        "Permissions": permissions_words(view.permissions),
        "Interactive": "no: non-interactive" if view.talk is False else None,
        "Agent": view.agent.label if view.agent else preset.agent,
        "Runner": view.runner or preset.runner,
        "Host": preset.host,
        "Requires": needs_words(preset.needs or {}),
        "Set by": origin_words(view.decided_by),
    }
    lines = [f"{name + ':':<13}{one_line(value)}" for name, value in facts.items() if value]
    lines += [f"! {one_line(warning)}" for warning in (*preset.warnings, *view.warnings)]
    lines += [f"✗ {one_line(problem)}" for problem in view.problems]
    return "\n".join([*lines, "", plain(preset.prompt).rstrip() or "(no prompt)"])


def _model(preset: Preset, view: Preview) -> str:
    if view.model is None:
        return preset.model or "none: set by the call or default_model"
    resolved = view.model.resolved or "the agent's own default"
    if view.model.source == "default_model":
        return f"{resolved} (default_model)"
    return resolved if preset.model in (None, resolved) else f"{preset.model} → {resolved}"


def _context(preset: Preset) -> str:
    flags = {
        "context files": preset.context_files,
        "project's": preset.project_resources,
        "parent's": preset.inherit_context,
    }
    return ", ".join(f"{name}: {'yes' if flag else 'no'}" for name, flag in flags.items() if flag is not None)


@click.command("models")
@click.option("--refresh", is_flag=True, help="Refresh the lists now. This starts each installed agent once.")
@click.option("--all", "everything", is_flag=True, help="Also list models that pi knows but has no key for.")
@json_option
def models(refresh: bool, everything: bool, as_json: bool) -> None:
    """List the models of each installed agent and your roles. The agent from your settings comes first.

    The lists are refreshed once a day. They include models from your settings and from pi's models.json, in the order
    in which a bare id is looked up.
    """
    engine = Engine.open()
    settings, usual = engine.settings, engine.agent()
    others = (agent for agent in installed_agents(settings) if agent.name != usual.name and not agent.own_model)
    agents = (usual, *others)
    _ask(agents, usual, is_forced=refresh)
    catalog = catalog_of(usual, settings)
    offered = [models_of(agent, settings, everything=everything) for agent in agents]
    try:
        roles = {**provider_roles(), **settings.roles}
        faults: tuple[str, ...] = ()
    except ModelError as error:
        roles, faults = dict(settings.roles), (f"{error.where}: {error.what}",)
    resolved = {name: _resolved(name, usual, catalog, settings) for name in sorted(roles)}
    problems = (*(catalog.problems if catalog else ()), *faults, *(of.problem for of in offered if of.problem))
    if as_json:
        document(
            {
                "models": [_model_document(model) for model in (offered[0].models if catalog else ())],
                "roles": {name: {"model": roles[name], **found} for name, found in resolved.items()},
                "complete": catalog is None or catalog.is_complete,
                "problems": problems,
                "agents": [_agent_document(of) for of in offered],
            }
        )
        return
    lines = [line for of in offered if of.models and not of.agent.own_model for line in _group(of)]
    rows = [(f"@{name}", roles[name], found["error"] or "") for name, found in resolved.items()]
    lines += ["", *table(ROLE_COLUMNS, rows, terminal_width())] if rows else []
    say("\n".join(lines).strip("\n") or "No models are known yet.")
    for problem in problems:
        note(f"! {one_line(problem)}")
    if catalog is None:
        note(
            f"{usual.label} {'uses no model and' if usual.own_model else 'lists no models here and'} accepts any model."
        )
    elif not (catalog.takes_unlisted or catalog.is_complete):
        note(f"The list may be incomplete or out of date: {catalog.refresh_hint}.")


def _ask(agents: Sequence[AgentChoice], usual: AgentChoice, *, is_forced: bool) -> None:
    """Ask those agents whose lists are a day old, or all. Raises AgentUnavailable where that is asked for and `usual`
    tells none, UsageError where there is nothing to ask.
    """
    asked = [agent for agent in agents if model_list(agent)] if is_forced else due(agents)
    if not asked and is_forced:
        raise UsageError("this agent has no list of models", where=usual.label, hint="it accepts any model")
    if asked:
        from ..agents.model_refresh import refresh_apart  # which ends them however this command ends

        began = time.time()
        refresh_apart(asked, TIMEOUT_S if is_forced else PATIENCE_S)
        if is_forced and (known := model_list(usual)):
            _check_told(usual, known.kept(), began)


def _check_told(agent: AgentChoice, kept: KeptList, began: float) -> None:
    """Raise AgentUnavailable where an agent that was asked told none, or where that could not be kept."""
    if kept.problem:
        raise AgentUnavailable(kept.problem, where=" ".join(agent.command), hint="try that command")
    if kept.asked_at < began:
        raise not_saved()


def _group(offered: AgentModels) -> list[str]:
    """Return the lines about what one agent offers, below its name."""
    own = offered.agent.name

    def known_from(model: Model) -> str:
        return f"→ {model.stands_for}" if model.stands_for else model.source if model.source != own else ""

    rows = [
        (
            f"  {model.ref}",
            context_words(model),
            price_words(model),
            "thinks" if model.thinks else "",
            known_from(model),
        )
        for model in offered.models
    ]
    lines = table(MODEL_COLUMNS, rows, terminal_width() - len(_INDENT))
    return ["", one_line(offered.agent.label), *(_INDENT + line for line in lines)]


def _model_document(model: Model) -> dict[str, Any]:
    return {
        "model": model.ref,
        "provider": model.provider,
        "id": model.id,
        "source": model.source,
        "thinking": model.thinks,
    }


def _agent_document(offered: AgentModels) -> dict[str, Any]:
    agent = offered.agent
    return {
        "agent": agent.name,
        "kind": agent.kind,
        "version": agent.version,
        "models": [
            _model_document(model)
            | {
                "standsFor": model.stands_for or None,
                "context": model.context,
                "price": msgspec.to_builtins(model.price),
            }
            for model in offered.models
        ],
        "askedAt": paths.iso_time(offered.asked_at) if offered.asked_at else None,
        "problem": offered.problem or None,
    }


def _resolved(role: str, agent: AgentChoice, catalog: Catalog | None, settings: Settings) -> dict[str, Any]:
    try:
        model = resolve_model(f"@{role}", None, settings, agent.own_model, catalog=catalog, levels=agent.levels)
    except ModelError as error:
        return {"resolved": None, "thinking": None, "error": error.what}
    return {"resolved": model.resolved or INHERIT, "thinking": model.thinking, "error": None}
