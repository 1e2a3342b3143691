"""Choose the agent of a run, and describe it without starting it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..agent_kinds import KINDS, USUAL
from ..config.settings import Settings
from ..errors import AgentUnavailable, nearest
from ..models.catalog import INHERIT, Catalog, Listing, Model, listed, settings_listing
from .agent import AgentChoice, Wanted
from .loader import launching_side
from .login import UNKNOWN, Login
from .model_list import ASK_AGAIN_S, TIMEOUT_S, ModelList

AUTO = "auto"

UNKNOWN_TIMEOUT_S = 10.0
"""Seconds an agent may take to list its models during a launch."""
A_MOMENT_S = 60.0


def choose_agent(name: str, settings: Settings, model: str | None = None) -> AgentChoice:
    """Return the named agent; `auto` is the first installed one that can serve the model: pi, claude, codex, ACP agents
    of the user's settings, offline.

    `model` None means that only the settings may name one. Raises AgentUnavailable for an unknown name, and for a
    program that is missing or not executable.
    """
    if name == AUTO:
        return _first_installed(settings, usual_model(settings) if model is None else model)
    if name in KINDS or name in settings.agents:
        return _described(name, settings)
    known_names = (AUTO, *KINDS, *settings.agents)
    hint = (
        nearest(name, known_names, cutoff=0.5)
        or f"known: {', '.join(known_names)}; add others under agents in your settings"
    )
    raise AgentUnavailable(f'unknown agent "{name}"', where="agent", hint=hint, code="agent.unknown")


def usual_model(settings: Settings) -> str:
    """Return the settings' default model, with its role resolved; empty if there is none."""
    model = (settings.default_model or "").strip()
    return "" if model == INHERIT else with_role(model, settings)


def with_role(model: str, settings: Settings) -> str:
    """Return the model of a role in the settings, and any other text unchanged; empty for a role that is unset or
    `inherit`.
    """
    if not model.startswith("@"):
        return model
    target = settings.roles.get(model[1:], "").strip()
    return "" if target == INHERIT else target


def installed_agents(settings: Settings) -> tuple[AgentChoice, ...]:
    """Return all agents that can start here, in `auto` order, then those from the settings."""
    choices: list[AgentChoice] = []
    for name in dict.fromkeys((*KINDS, *settings.agents)):
        try:
            choices.append(_described(name, settings))
        except AgentUnavailable:
            continue
    return tuple(choices)


def _first_installed(settings: Settings, model: str) -> AgentChoice:
    provider = model.partition("/")[0] if "/" in model else ""
    note = ""
    for name in _in_order(settings):
        try:
            choice = _described(name, settings)
        except AgentUnavailable as error:
            note = note or (f"{name}: {error.what}" if error.where != _setting(name) else error.what)
            continue
        side = launching_side(choice.kind)
        if side.serves(choice, provider) and side.offers(choice, model):
            return replace(choice, note=note)
        note = note or f"{name} has no {provider or model} here"
    raise AssertionError("the last kind serves everything")


def _in_order(settings: Settings) -> Iterator[str]:
    """Yield the agents that `auto` tries: each kind; for a protocol, the agents that the user configured."""
    for kind, row in KINDS.items():
        if row.from_settings:
            yield from (name for name, configured in settings.agents.items() if kind in (configured.kind, name))
        else:
            yield kind


def may_serve(choice: AgentChoice, model: str) -> bool:
    """Whether an agent can use a model, `provider/id`, judging by its credentials."""
    return launching_side(choice.kind).serves(choice, model.partition("/")[0])


def agent_elsewhere(name: str, settings: Settings, missing: AgentUnavailable) -> AgentChoice:
    """Describe an agent that cannot start here, with the reason `missing`, for a run on a machine that may have it.

    Raises `missing` if no agent has that name.
    """
    if name not in KINDS and name not in settings.agents:
        raise missing
    return replace(_described(name, settings, is_here=False), note=f"here {missing.what}")


def _described(name: str, settings: Settings, *, is_here: bool = True) -> AgentChoice:
    configured = settings.agents.get(name)
    kind = (configured.kind if configured else "") or (name if name in KINDS else USUAL)
    agent = launching_side(kind)
    command = configured.command if configured else (agent.program,)
    choice = agent.choose(name, agent.find(name, command) if is_here else command, configured.env if configured else {})
    if configured and not configured.kind and name not in KINDS:
        return replace(choice, talks=False)  # the user's own program, which may not support messages
    return choice


def _setting(name: str) -> str:
    return f"agents.{name}.command"


def settled(choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
    """Return a sentence for each requirement without effect or only advisory. Raises UsageError if unsupported."""
    side = launching_side(choice.kind)
    if wanted.permissions is None:
        return side.settle(choice, wanted)
    from ._rules import check_rules

    return (*check_rules(choice, wanted, side.fault_of_rule), *side.settle(choice, wanted))


def find_out(choice: AgentChoice, wanted: Wanted) -> None:
    """Get the information that `settled` lacks, which may start the agent once. Raises AgentUnavailable."""
    launching_side(choice.kind).find_out(choice, wanted)


def credentials_of(choice: AgentChoice) -> tuple[str, ...] | None:
    """Return where an agent's keys or login are; None if that is unknown."""
    return launching_side(choice.kind).credentials(choice)


def login_of(choice: AgentChoice, settings: Settings) -> Login:
    """Return whether an agent is logged in, judging by files; starts nothing."""
    configured = settings.agents.get(choice.name)
    if configured and not configured.kind and choice.name not in KINDS:
        return UNKNOWN  # the user's own program: known only to use pi's protocol
    return launching_side(choice.kind).login(choice)


def offers(choice: AgentChoice, model: str) -> bool:
    """Whether a model, as written by a user, may be one of an agent's models, regardless of credentials."""
    return launching_side(choice.kind).offers(choice, model)


def catalog_of(choice: AgentChoice, settings: Settings, announced: Sequence[str] | None = None) -> Catalog | None:
    """Return the models known of an agent without starting it; None for one that takes any.

    `announced` are the models of a parent session. None: it announces none, or there is no parent.
    """
    side = launching_side(choice.kind)
    first = settings_listing(model for model in settings.models if side.offers(choice, model))
    if announced is not None and KINDS[choice.kind].announces_models:
        models = (*settings_listing(announced).models, *first.models)
        source = f"the list of models of this {KINDS[choice.kind].title} session"
        first = Listing(models, own=True, complete=True, source=source)
    return side.catalog(choice, first)


def with_model(choice: AgentChoice, model: str, settings: Settings, catalog: Catalog | None) -> AgentChoice:
    """Return the agent that `auto` uses for a model, as written: the first choice with its `catalog`, unless only a
    later agent is known to have the model.
    """
    if catalog is None or not model or listed(model, catalog):
        return choice
    for other in installed_agents(settings):
        other_catalog = catalog_of(other, settings) if other.name in KINDS and other.kind != choice.kind else None
        if other_catalog and (ref := listed(model, other_catalog)) and may_serve(other, ref):
            return replace(other, note=f"{choice.name} has no {model} here")
    return choice


def own_listings(choice: AgentChoice) -> tuple[Listing, ...]:
    """Return an agent's known models apart from the settings', the most certain first."""
    return tuple(launching_side(choice.kind).listings(choice))


def has_whole_list(choice: AgentChoice) -> bool:
    """Whether an agent has only the models in its lists."""
    return any(listing.complete for listing in own_listings(choice))


def model_list(choice: AgentChoice) -> ModelList | None:
    """Return the agent's saved list of models; None if it does not list models."""
    return launching_side(choice.kind).model_list(choice)


def refresh_models(choice: AgentChoice, timeout: float = TIMEOUT_S) -> Sequence[Model]:
    """Start the agent for its list of models, and save the list. Raises AgentUnavailable."""
    return launching_side(choice.kind).refresh(choice, timeout)


def ask_again(choice: AgentChoice) -> bool:
    """Start an agent for its list of models because it lacks a model; return whether it gave one.

    An agent asked a moment ago is not asked again; nor one asked today, if it may have unlisted models. An agent
    without a known version or list is not asked, because it could be any program.
    """
    saved_list = model_list(choice)
    if saved_list is None or (choice.version is None and not any(listing.own for listing in own_listings(choice))):
        return False
    kept = saved_list.kept()
    patience = A_MOMENT_S if has_whole_list(choice) else ASK_AGAIN_S
    if not saved_list.is_outdated and time.time() - kept.asked_at < patience:
        return False
    try:
        refresh_models(choice, UNKNOWN_TIMEOUT_S)
    except AgentUnavailable:
        return False  # its previous list stays valid
    return True
