"""`subdeck presets` and `models`: list the presets and models for a run, or show one preset."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from .. import paths
from ..agents.agent import AgentChoice
from ..agents.choice import catalog_of, installed_agents, model_list
from ..agents.installed import AgentModels, context_words, due, models_of, price_words
from ..agents.model_list import TIMEOUT_S, KeptList, not_saved
from ..config.host_settings import needs_words
from ..config.settings import Settings
from ..engine import Engine
from ..errors import AgentUnavailable, ModelError, UsageError
from ..launch.model import resolve_model
from ..launch.preview import Obstacle, Preview, obstacles, preview, tools_words
from ..models.catalog import INHERIT, Catalog, Model, Price
from ..models.resolvers import provider_roles
from ..presets.catalog import Preset, PresetCatalog
from ..presets.fields import preset_schema
from ..run.describe import limits_words, permissions_words, prompt_mode_words
from ..run.model import Limits, Permissions, PresetSource, PromptMode, Tools
from ..spec.layers import origin_words
from ..text.column import Column
from ..text.plain import one_line, plain
from ._command import Document, command
from ._table import table
from .output import Note, Output, Piece, document, terminal_width

MARK_COLUMN = Column(1)
"""Marks presets that cannot start; only if there are any."""
PRESET_COLUMNS = (Column(40, least=12), Column(8), Column(40, least=8), Column(200, least=16))
_INDENT = "  "
PATIENCE_S = 10.0
"""Seconds to wait for an agent whose list is out of date, if no refresh was requested."""

MODEL_COLUMNS = (Column(120, least=24), Column(8, right=True), Column(16), Column(8), Column(80, least=8))
ROLE_COLUMNS = (Column(40, least=8), Column(120, least=24), Column(200, least=16))

D = TypeVar("D", bound=Document)

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


class ListedPreset(Document, frozen=True):
    """A preset in the list."""

    name: str
    source: PresetSource
    path: str
    form: str
    """Format of its file; empty for a subdeck preset."""
    description: str
    model: str | None
    """As written."""
    tools: tuple[str, ...] | None
    """The only tools that the agent may use; null for its own set."""
    warnings: tuple[str, ...]
    cannot_start: tuple[str, ...]
    """Why it cannot start here; empty if it can."""


class ResolvedPreset(Document, frozen=True):
    """The values that a run would get here; null for a value with a problem."""

    agent: str | None
    runner: str | None
    model: str | None
    thinking: str | None
    tools: Tools | None
    limits: Limits
    permissions: Permissions | None
    talk: bool | None
    """Whether the run takes messages."""
    max_attempts: int
    decided_by: dict[str, str]
    """By field: the layer that set it, such as `preset`."""
    warnings: tuple[str, ...]
    problems: tuple[str, ...]
    """Why a run would not start."""


class ShownPreset(Document, frozen=True):
    """A named preset. Its fields are as written; null for a field that its file does not set."""

    name: str
    source: PresetSource
    path: str
    form: str
    description: str
    model: str | None
    thinking: str | None
    tools: tuple[str, ...] | None
    denied_tools: tuple[str, ...] | None
    prompt_mode: PromptMode
    context_files: bool | None
    project_resources: bool | None
    inherit_context: bool | None
    finalize: bool
    """Whether the run requires a structured result."""
    max_attempts: int | None
    sticky: bool
    agent: str | None
    runner: str | None
    host: str | None
    needs: dict[str, float] | None
    limits: Limits
    talk: bool | None
    permissions: Permissions
    answer_timeout: float | None
    """Seconds after which an unanswered request is denied."""
    idle_timeout: float | None
    """Seconds that an interrupted agent waits for a message."""
    warnings: tuple[str, ...]
    prompt: str
    session: str | None
    """`none` if the run saves no session."""
    resolved: ResolvedPreset


class BrokenPreset(Document, frozen=True):
    """A file that is not a valid preset."""

    path: str
    message: str


class Presets(Document, frozen=True):
    """The list of presets; with NAME only that preset, with all its fields."""

    presets: tuple[ListedPreset | ShownPreset, ...]
    problems: tuple[BrokenPreset, ...]


@command(
    "presets",
    "subdeck presets",
    "subdeck presets implement # one preset in full",
    "subdeck presets --schema > preset.schema.json",
)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--schema", is_flag=True, help="Print a JSON Schema of the frontmatter, for use in an editor.")
def presets(name: str | None, schema: bool) -> Output[Presets] | None:
    """List the presets with their source and model. ✗ marks a preset that cannot start here, and the reason follows.
    Files that cannot be used are listed after the presets.

    With NAME, show one preset in full, with the model, tools and limits that a run would get here.
    """
    if schema:
        document(preset_schema())
        return None
    engine = Engine.open()
    catalog = engine.presets()
    if name is not None:
        preset = catalog.get(name)
        view = preview(preset, engine.workspace)
        return Output(lambda: Presets((preset_document(preset, view),), ()), _preset_text(preset, view))
    stopped = obstacles(catalog.presets, engine.workspace)
    return Output(lambda: _list_document(catalog, stopped), _listed(catalog, stopped))


def _list_document(catalog: PresetCatalog, stopped: Mapping[str, Sequence[Obstacle]]) -> Presets:
    listed = (
        _written(ListedPreset, preset, cannot_start=tuple(reason.words for reason in stopped.get(preset.name, ())))
        for preset in catalog.presets
    )
    problems = (BrokenPreset(problem.where, problem.message) for problem in catalog.problems)
    return Presets(tuple(listed), tuple(problems))


def _listed(catalog: PresetCatalog, stopped: Mapping[str, Sequence[Obstacle]]) -> str:
    if not catalog.presets and not catalog.problems:
        return EMPTY.format(
            patterns=catalog.patterns, places="\n".join(f"  {one_line(directory)}" for directory in catalog.directories)
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


def preset_document(preset: Preset, view: Preview) -> ShownPreset:
    """Return everything about a preset: as written, and below `resolved` as a run would get it."""
    resolved = ResolvedPreset(
        agent=view.agent.name if view.agent else None,
        runner=view.runner,
        model=view.model.resolved if view.model else None,
        thinking=view.model.thinking if view.model else None,
        tools=view.tools,
        limits=view.spec.limits,
        permissions=view.permissions,
        talk=view.talk,
        max_attempts=view.max_attempts,
        decided_by=view.spec.decided,
        warnings=view.warnings,
        problems=view.problems,
    )
    session = None if preset.keeps_session else "none"
    return _written(ShownPreset, preset, session=session, resolved=resolved)


def _written(form: type[D], preset: Preset, **more: Any) -> D:
    """Return a document with the fields of a preset that it has under the same name, and with more."""
    names = set(form.__struct_fields__) - more.keys()
    return form(**{name: getattr(preset, _ATTRIBUTES.get(name, name)) for name in names}, **more)


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
        "Limits": limits_words(view.spec.limits),
        "Permissions": permissions_words(view.permissions),
        "Interactive": "no: non-interactive" if view.talk is False else None,
        "Agent": view.agent.label if view.agent else preset.agent,
        "Runner": view.runner or preset.runner,
        "Host": preset.host,
        "Requires": needs_words(preset.needs or {}),
        "Set by": origin_words(view.spec.decided),
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


class ModelRow(Document, frozen=True):
    """A model that a run can name."""

    model: str
    """As `--model` takes it."""
    provider: str
    id: str
    source: str
    """Where its entry comes from."""
    thinking: bool | None
    """Whether it has thinking levels; null if unknown."""


class AgentModel(ModelRow, frozen=True):
    """A model of an agent."""

    stands_for: str | None
    """The model behind an alias."""
    context: int | None
    """Tokens."""
    price: Price | None


class Role(Document, frozen=True):
    """A role, such as `@fast`."""

    model: str
    """As written in the settings."""
    resolved: str | None
    thinking: str | None
    error: str | None
    """Why it cannot be used."""


class AgentList(Document, frozen=True):
    """The models of an installed agent."""

    agent: str
    kind: str
    version: str | None
    models: tuple[AgentModel, ...]
    asked_at: str | None
    """Time of the list; null if the agent was never asked."""
    problem: str | None
    """Why the list is missing or old."""


class Models(Document, frozen=True):
    """The models of all installed agents."""

    models: tuple[ModelRow, ...]
    """Models of the agent from your settings."""
    roles: dict[str, Role]
    complete: bool
    """Whether `models` has all models of that agent."""
    problems: tuple[str, ...]
    agents: tuple[AgentList, ...]


@command(
    "models",
    "subdeck models",
    "subdeck models --refresh",
)
@click.option("--refresh", is_flag=True, help="Refresh the lists now. This starts each installed agent once.")
@click.option("--all", "everything", is_flag=True, help="Also list models that pi knows but has no key for.")
def models(refresh: bool, everything: bool) -> Output[Models]:
    """List the models of each installed agent and your roles. The agent from your settings comes first.

    The lists are refreshed once a day. They include models from your settings and from pi's models.json, in the order
    in which a bare id is looked up.
    """
    engine = Engine.open()
    settings, usual = engine.settings, engine.agent()
    other_agents = (agent for agent in installed_agents(settings) if agent.name != usual.name and not agent.own_model)
    agents = (usual, *other_agents)
    _ask(agents, usual, is_forced=refresh)
    catalog = catalog_of(usual, settings)
    offered = [models_of(agent, settings, everything=everything) for agent in agents]
    try:
        roles = {**provider_roles(), **settings.roles}
        faults: tuple[str, ...] = ()
    except ModelError as error:
        roles, faults = dict(settings.roles), (f"{error.where}: {error.what}",)
    resolved = {name: _resolved(name, model, usual, catalog, settings) for name, model in sorted(roles.items())}
    problems = (*(catalog.problems if catalog else ()), *faults, *(of.problem for of in offered if of.problem))
    document = Models(
        models=tuple(map(_model_document, offered[0].models if catalog else ())),
        roles=resolved,
        complete=catalog is None or catalog.is_complete,
        problems=problems,
        agents=tuple(map(_agent_document, offered)),
    )

    def text() -> Iterator[Piece]:
        lines = [line for of in offered if of.models and not of.agent.own_model for line in _group(of)]
        rows = [(f"@{name}", role.model, role.error or "") for name, role in resolved.items()]
        lines += ["", *table(ROLE_COLUMNS, rows, terminal_width())] if rows else []
        yield "\n".join(lines).strip("\n") or "No models are known yet."
        for problem in problems:
            yield Note(f"! {one_line(problem)}")
        if catalog is None:
            has_none = "uses no model and" if usual.own_model else "lists no models here and"
            yield Note(f"{usual.label} {has_none} accepts any model.")
        elif not (catalog.takes_unlisted or catalog.is_complete):
            yield Note(f"The list may be incomplete or out of date: {catalog.refresh_hint}.")

    return Output(document, text())


def _ask(agents: Sequence[AgentChoice], usual: AgentChoice, *, is_forced: bool) -> None:
    """Ask the agents whose lists are a day old, or all if forced.

    If forced, raises AgentUnavailable if `usual` returns no list, and UsageError if no agent has one.
    """
    asked = [agent for agent in agents if model_list(agent)] if is_forced else due(agents)
    if not asked and is_forced:
        raise UsageError("this agent has no list of models", where=usual.label, hint="it accepts any model")
    if asked:
        from ..agents.model_refresh import refresh_apart  # ends them however this command ends

        began = time.time()
        refresh_apart(asked, TIMEOUT_S if is_forced else PATIENCE_S)
        if is_forced and (saved_list := model_list(usual)):
            _check_saved(usual, saved_list.kept(), began)


def _check_saved(agent: AgentChoice, kept: KeptList, began: float) -> None:
    """Raise AgentUnavailable if an agent returned no list, or if its list could not be saved."""
    if kept.problem:
        raise AgentUnavailable(kept.problem, where=" ".join(agent.command), hint="try that command")
    if kept.asked_at < began:
        raise not_saved()


def _group(offered: AgentModels) -> list[str]:
    """Return the models of one agent in lines below its name."""
    agent_name = offered.agent.name

    def source_words(model: Model) -> str:
        return f"→ {model.stands_for}" if model.stands_for else model.source if model.source != agent_name else ""

    rows = [
        (
            f"  {model.ref}",
            context_words(model),
            price_words(model),
            "thinks" if model.thinks else "",
            source_words(model),
        )
        for model in offered.models
    ]
    lines = table(MODEL_COLUMNS, rows, terminal_width() - len(_INDENT))
    return ["", one_line(offered.agent.label), *(_INDENT + line for line in lines)]


def _model_document(model: Model) -> ModelRow:
    return ModelRow(model.ref, model.provider, model.id, model.source, model.thinks)


def _agent_document(offered: AgentModels) -> AgentList:
    agent = offered.agent
    models = (
        AgentModel(
            *(model.ref, model.provider, model.id, model.source, model.thinks),
            model.stands_for or None,
            model.context,
            model.price,
        )
        for model in offered.models
    )
    asked_at = paths.iso_time(offered.asked_at) if offered.asked_at else None
    return AgentList(agent.name, agent.kind, agent.version, tuple(models), asked_at, offered.problem or None)


def _resolved(name: str, written: str, agent: AgentChoice, catalog: Catalog | None, settings: Settings) -> Role:
    try:
        model = resolve_model(f"@{name}", None, settings, agent.own_model, catalog=catalog, levels=agent.levels)
    except ModelError as error:
        return Role(written, None, None, error.what)
    return Role(written, model.resolved or INHERIT, model.thinking, None)
