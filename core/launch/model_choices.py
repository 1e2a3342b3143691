"""What can be written for the model of a run, and on which agent each of it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from ..agents.agent import AgentChoice
from ..agents.choice import choose_agent, model_list, offers, usual_model
from ..agents.offered import PATIENCE_S, agents_of, context_words, due, models_of, price_words
from ..config.settings import Settings
from ..errors import AgentUnavailable
from ..models.catalog import INHERIT, settings_listing
from ..text.plain import one_line
from .model import known_roles


class ModelChoice(Struct, frozen=True):
    ref: str
    """As it is written: `provider/id`, an agent's own name for one, or `@role`."""
    agent: str = ""
    """The agent whose it is; empty for a role, and where nothing but the settings knows it."""
    about: str = ""
    """What the agent tells of it, for a person: what it stands for, how much it takes in, its price."""


def model_choices(agent: str | None, settings: Settings) -> tuple[ModelChoice, ...]:
    """Return the roles that are set, then the models known of an agent (None: that of the settings), in catalog order;
    for `auto` those of all installed agents, agent by agent; of a model that several have, the first one's counts.

    What an agent brings along without a key for it is left out, and what none of them has. A source that cannot be read
    offers nothing; why is said when a model is resolved.
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
    """Tell whether a run on this agent (None: that of the settings) does without default_model, which is another's."""
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
    """Ask those agents whose lists are a day old, while others go on or leave; False where there is none.

    `news` is called in another thread each time that one of them has answered, and with True after the last.
    """
    asked = due(agents_of(agent or settings.agent, settings))
    if not asked:
        return False
    for each in asked:
        if known := model_list(each):
            known.begin(PATIENCE_S)
    from threading import Thread

    def ask() -> None:
        from ..agents.model_refresh import refresh_apart

        try:
            refresh_apart(asked, PATIENCE_S, lambda: news(False))
        except OSError:
            pass  # what was known before is known still
        news(True)

    Thread(target=ask, name="models", daemon=True).start()
    return True
