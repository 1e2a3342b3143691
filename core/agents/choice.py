"""Which agent a run gets, and what is known of it without starting it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..agent_kinds import KINDS, NAMED_ONLY, USUAL
from ..config.settings import Settings
from ..errors import AgentUnavailable, nearest
from ..models.catalog import INHERIT, Catalog, Listing, Model, listed, settings_listing
from .agent import AgentChoice, Wanted
from .kinds import launching_side
from .login import UNKNOWN, Login
from .model_list import ASK_AGAIN_S, TIMEOUT_S, ModelList

AUTO = "auto"

UNKNOWN_TIMEOUT_S = 10.0
"""How long an agent may take to list its models while somebody waits for a launch."""
A_MOMENT_S = 60.0


def choose_agent(name: str, settings: Settings, model: str | None = None) -> AgentChoice:
    """Return the agent of that name; `auto` is the first installed one that can serve the model, as it is written:
    pi, claude, codex, those of ACP in the user's settings, offline.

    `model` is None where nobody names one but maybe the settings. Raises AgentUnavailable for a program that is missing
    or cannot be executed, and for an unknown name.
    """
    if name == AUTO:
        return _first_installed(settings, usual_model(settings) if model is None else model)
    if name in KINDS or name in settings.agents:
        return _described(name, settings)
    known = (AUTO, *KINDS, *settings.agents)
    hint = nearest(name, known, cutoff=0.5) or f"known: {', '.join(known)}; add others under agents in your settings"
    raise AgentUnavailable(f'unknown agent "{name}"', where="agent", hint=hint, code="agent.unknown")


def usual_model(settings: Settings) -> str:
    """Return the model that the settings name for runs that name none, with its role looked up in them; else empty."""
    model = (settings.default_model or "").strip()
    return "" if model == INHERIT else with_role(model, settings)


def with_role(model: str, settings: Settings) -> str:
    """Return what a role of the settings stands for, and any other text as it is; empty for a role that is not set, or
    that names no model itself (`inherit`).
    """
    if not model.startswith("@"):
        return model
    target = settings.roles.get(model[1:], "").strip()
    return "" if target == INHERIT else target


def installed_agents(settings: Settings) -> tuple[AgentChoice, ...]:
    """Return all agents that can be started here, in the order of `auto`, then those of the settings."""
    found: list[AgentChoice] = []
    for name in dict.fromkeys((*KINDS, *settings.agents)):
        try:
            found.append(_described(name, settings))
        except AgentUnavailable:
            continue
    return tuple(found)


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
    """Yield the agents that `auto` tries: the kinds, and those that the user has set up for a protocol in its place."""
    for kind in KINDS:
        if kind == NAMED_ONLY:
            yield from (name for name, own in settings.agents.items() if NAMED_ONLY in (own.kind, name))
        else:
            yield kind


def may_serve(choice: AgentChoice, model: str) -> bool:
    """Tell whether a model, `provider/id`, can be had from an agent, as far as its credentials are seen."""
    return launching_side(choice.kind).serves(choice, model.partition("/")[0])


def agent_elsewhere(name: str, settings: Settings, missing: AgentUnavailable) -> AgentChoice:
    """Describe an agent that cannot be started here, as `missing` says, for a run on a machine that may have it.

    Raises `missing` where no agent has that name.
    """
    if name not in KINDS and name not in settings.agents:
        raise missing
    return replace(_described(name, settings, is_here=False), note=f"here {missing.what}")


def _described(name: str, settings: Settings, *, is_here: bool = True) -> AgentChoice:
    own = settings.agents.get(name)
    kind = (own.kind if own else "") or (name if name in KINDS else USUAL)
    agent = launching_side(kind)
    command = own.command if own else (agent.program,)
    choice = agent.choose(name, agent.find(name, command) if is_here else command, own.env if own else {})
    if own and not own.kind and name not in KINDS:
        return replace(choice, talks=False)  # a program of the user's, of which nobody said that it can do so
    return choice


def _setting(name: str) -> str:
    return f"agents.{name}.command"


def settled(choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
    """Return what of a wish is only advice to the agent, or has no effect. Raises UsageError for what it cannot do."""
    side = launching_side(choice.kind)
    if wanted.permissions is None:
        return side.settle(choice, wanted)
    from ._rules import check_rules

    return (*check_rules(choice, wanted, side.fault_of_rule), *side.settle(choice, wanted))


def find_out(choice: AgentChoice, wanted: Wanted) -> None:
    """Learn what `settled` needs to know of an agent, which may start it once. Raises AgentUnavailable."""
    launching_side(choice.kind).find_out(choice, wanted)


def credentials_of(choice: AgentChoice) -> tuple[str, ...] | None:
    """Return where keys or a login of an agent are seen; None where that is not known."""
    return launching_side(choice.kind).credentials(choice)


def login_of(choice: AgentChoice, settings: Settings) -> Login:
    """Return whether an agent is logged in, as far as files tell; nothing is started."""
    own = settings.agents.get(choice.name)
    if own and not own.kind and choice.name not in KINDS:
        return UNKNOWN  # a program of the user's: only that it speaks as pi does is known
    return launching_side(choice.kind).login(choice)


def offers(choice: AgentChoice, model: str) -> bool:
    """Tell whether a model, as somebody wrote it, may be one of an agent's, whatever its credentials."""
    return launching_side(choice.kind).offers(choice, model)


def catalog_of(choice: AgentChoice, settings: Settings, announced: Sequence[str] | None = None) -> Catalog | None:
    """Return the models known of an agent without starting it; None for one that takes any.

    `announced` are those that a parent session has, which is a pi. None: there is no such parent.
    """
    side = launching_side(choice.kind)
    first = settings_listing(model for model in settings.models if side.offers(choice, model))
    if announced is not None and choice.kind == USUAL:
        models = (*settings_listing(announced).models, *first.models)
        first = Listing(models, own=True, complete=True, source="the list of models of this pi session")
    return side.catalog(choice, first)


def with_model(choice: AgentChoice, model: str, settings: Settings, catalog: Catalog | None) -> AgentChoice:
    """Return the agent that `auto` takes for a model, as somebody wrote it: the first choice with its `catalog`, unless
    only a later one is known to have the model.
    """
    if catalog is None or not model or listed(model, catalog):
        return choice
    for other in installed_agents(settings):
        known = catalog_of(other, settings) if other.name in KINDS and other.kind != choice.kind else None
        if known and (ref := listed(model, known)) and may_serve(other, ref):
            return replace(other, note=f"{choice.name} has no {model} here")
    return choice


def own_listings(choice: AgentChoice) -> tuple[Listing, ...]:
    """Return what is known of an agent's models beside those of the settings, the most certain first."""
    return tuple(launching_side(choice.kind).listings(choice))


def has_whole_list(choice: AgentChoice) -> bool:
    """Tell whether a model that is in none of its lists is one that the agent does not have."""
    return any(listing.complete for listing in own_listings(choice))


def model_list(choice: AgentChoice) -> ModelList | None:
    """Return the agent's own list of models, as it is kept; None for one that has none."""
    return launching_side(choice.kind).model_list(choice)


def refresh_models(choice: AgentChoice, timeout: float = TIMEOUT_S) -> Sequence[Model]:
    """Start the agent for its list of models, and keep that. Raises AgentUnavailable."""
    return launching_side(choice.kind).refresh(choice, timeout)


def ask_again(choice: AgentChoice) -> bool:
    """Start an agent for its list of models because a model is not in it; return whether it gave one.

    It is not asked if it was a moment ago, or today if a model that is not in its list may be one of its all the same;
    nor if neither its version nor a list of it is known, because such a program may be anything.
    """
    known = model_list(choice)
    if known is None or (choice.version is None and not any(listing.own for listing in own_listings(choice))):
        return False
    kept = known.kept()
    patience = A_MOMENT_S if has_whole_list(choice) else ASK_AGAIN_S
    if not known.is_outdated and time.time() - kept.asked_at < patience:
        return False
    try:
        refresh_models(choice, UNKNOWN_TIMEOUT_S)
    except AgentUnavailable:
        return False  # what it listed before still counts
    return True
