"""Installed agents: their known models without starting them, and a refresh of all lists at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..agent_kinds import KINDS
from ..config.settings import Settings
from ..errors import AgentUnavailable
from ..models.catalog import BUILT_IN, Catalog, Model, settings_listing
from ..run.describe import tokens
from .agent import AgentChoice
from .choice import AUTO, catalog_of, choose_agent, installed_agents, login_of, model_list, offers, refresh_models
from .login import UNKNOWN, Login, LoginState

PATIENCE_S = 20.0
"""Seconds for an agent to list its models if no user requested the list."""


class AgentModels(Struct, frozen=True):
    """An agent and its models."""

    agent: AgentChoice
    models: tuple[Model, ...]
    """In catalog order; built-in models without a key are omitted, except with `everything`."""
    asked_at: float = 0.0
    """Last request, in seconds since 1970; 0 for never."""
    problem: str = ""
    """Why that request failed, as text for the user."""


def models_of(agent: AgentChoice, settings: Settings, *, everything: bool = False) -> AgentModels:
    """Return an agent's known models, each merged from all sources."""
    named = [model for model in settings.models if offers(agent, model)]
    catalog = catalog_of(agent, settings) or Catalog((lambda: settings_listing(named),))
    facts: dict[str, Model] = {}
    for listing in catalog.listings():
        for model in listing.models:
            if merged := facts.get(model.ref):
                facts[model.ref] = replace(
                    merged, context=merged.context or model.context, price=merged.price or model.price
                )
            elif everything or model.source != BUILT_IN:
                facts[model.ref] = model
    saved_list = model_list(agent)
    kept = saved_list.kept() if saved_list else None
    return AgentModels(agent, tuple(facts.values()), kept.asked_at if kept else 0.0, kept.problem if kept else "")


def agents_of(name: str, settings: Settings) -> tuple[AgentChoice, ...]:
    """Return the agents a run can get under this name: all installed ones for `auto`.

    The offline agent, which uses no model, is omitted if there are others.
    """
    if name != AUTO:
        try:
            return (choose_agent(name, settings),)
        except AgentUnavailable:
            return ()
    installed = installed_agents(settings)
    return tuple(agent for agent in installed if not agent.own_model) or installed


def due(agents: Iterable[AgentChoice]) -> tuple[AgentChoice, ...]:
    """Return the agents whose lists are missing or a day old."""
    lists = ((agent, model_list(agent)) for agent in agents)
    return tuple(agent for agent, saved_list in lists if saved_list and saved_list.is_due())


def refresh_all(
    agents: Sequence[AgentChoice], timeout: float = PATIENCE_S, answered: Callable[[], None] = lambda: None
) -> dict[str, AgentUnavailable]:
    """Start all these agents at once for their lists of models; return the errors by agent name.

    `answered` is called in a thread after each agent.
    """
    from threading import Thread  # most listings of models start no agent

    faults: dict[str, AgentUnavailable] = {}

    def ask(agent: AgentChoice) -> None:
        try:
            refresh_models(agent, timeout)
        except AgentUnavailable as error:
            faults[agent.name] = error
        answered()

    threads = [Thread(target=ask, args=(agent,), daemon=True) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


def context_words(model: Model) -> str:
    """Return a model's context window, as `200k`; empty if unknown."""
    return tokens(model.context) if model.context else ""


def price_words(model: Model) -> str:
    """Return the price of a million input and output tokens, as `$3/$15`; empty if unknown."""
    return f"${model.price.input:g}/${model.price.output:g}" if model.price else ""


# --- known agents ----------------------------------------------------------------------------------------------------


class KnownAgent(Struct, frozen=True):
    name: str
    version: str = ""
    """Empty if unknown or not versioned."""
    login: Login = UNKNOWN
    problem: str = ""
    """Why it cannot start here; empty if it can."""
    hint: str = ""
    """How to fix that."""

    @property
    def is_here(self) -> bool:
        return not self.problem

    @property
    def words(self) -> str:
        """Its state as text: `2.1.330 · logged in`, `not usable here: codex is not on PATH`."""
        if self.problem:
            return f"not usable here: {self.problem}"
        if self.login.state is LoginState.UNNEEDED:
            return f"{self.login.words}, uses no model"
        return f"{self.version or 'version unknown'} · {self.login.words}"


def known_agents(settings: Settings) -> tuple[KnownAgent, ...]:
    """Return all agents that can be named, in `auto` order, then those from the settings; starts nothing."""
    return tuple(_known_agent(name, settings) for name in _names(settings))


def described(choice: AgentChoice, settings: Settings) -> KnownAgent:
    """Return a chosen agent as a known agent."""
    return KnownAgent(choice.name, choice.version or "", login_of(choice, settings))


def _names(settings: Settings) -> Iterator[str]:
    yield from (kind for kind, row in KINDS.items() if not row.from_settings)
    yield from (name for name in settings.agents if name not in KINDS or KINDS[name].from_settings)


def _known_agent(name: str, settings: Settings) -> KnownAgent:
    try:
        return described(choose_agent(name, settings), settings)
    except AgentUnavailable as error:
        return KnownAgent(name, problem=error.what, hint=error.hint)
