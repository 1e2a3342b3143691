"""The choices for a run's model, and the agent that has each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from ..agents.agent import AgentChoice
from ..agents.choice import choose_agent, model_list, offers, usual_model
from ..agents.installed import PATIENCE_S, agents_of, context_words, due, models_of, price_words
from ..config.settings import Settings
from ..errors import AgentUnavailable
from ..models.catalog import INHERIT, settings_listing
from ..text.plain import one_line
from .model import known_roles


class ModelChoice(Struct, frozen=True):
    ref: str
    """As written: `provider/id`, an agent's own name, or `@role`."""
    agent: str = ""
    """Name of the agent that has it; empty for a role, and for models known only from the settings."""
    about: str = ""
    """The agent's description for a person: the model it stands for, context size, price."""


def model_choices(agent: str | None, settings: Settings) -> tuple[ModelChoice, ...]:
    """Return the configured roles, then an agent's known models (None: the settings' agent) in catalog order. For
    `auto`, return the models of all installed agents, agent by agent; a shared model counts for the first.

    Models that an agent lists without having a key are left out, as are roles that none of the agents has. Unreadable
    sources are skipped; resolving a model reports why.
    """
    agents = agents_of(agent or settings.agent, settings)
    choices = [
        ModelChoice(role)
        for role, model in known_roles(settings).items()
        if not agents or model == INHERIT or any(offers(each, model) for each in agents)
    ]
    for each in agents:
        choices += _of_agent(each, settings)
    if not agents:
        choices += [ModelChoice(model.ref) for model in settings_listing(settings.models).models]
    return tuple(choices)


def leaves_default(agent: str | None, settings: Settings) -> bool:
    """Return whether a run on this agent (None: the settings' agent) ignores default_model, because it lacks that
    model.
    """
    try:
        choice = choose_agent(agent or settings.agent, settings)
    except AgentUnavailable:
        return False
    return choice.has_default_model and not offers(choice, usual_model(settings))


def _of_agent(agent: AgentChoice, settings: Settings) -> Iterator[ModelChoice]:
    for model in models_of(agent, settings).models:
        facts = (model.stands_for, context_words(model), price_words(model))
        yield ModelChoice(model.ref, agent.name, one_line(" ".join(filter(None, facts)), 80))


def refresh_choices(agent: str | None, settings: Settings, news: Callable[[bool], None]) -> bool:
    """Ask the agents whose lists are a day old, in a thread; return False if there are none.

    `news` is called in that thread after each answer, and with True after the last.
    """
    asked = due(agents_of(agent or settings.agent, settings))
    if not asked:
        return False
    for each in asked:
        if saved_list := model_list(each):
            saved_list.begin(PATIENCE_S)
    from threading import Thread

    def ask() -> None:
        from ..agents.model_refresh import refresh_apart

        try:
            refresh_apart(asked, PATIENCE_S, lambda: news(False))
        except OSError:
            pass  # the earlier lists stay
        news(True)

    Thread(target=ask, name="models", daemon=True).start()
    return True
