"""What can be written for the model of a run, and on which agent each of it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from ..agents.agent import AgentChoice
from ..agents.choice import model_list, offers
from ..agents.offered import PATIENCE_S, agents_of, context_words, due, models_of, price_words
from ..config.settings import Settings
from ..models.catalog import settings_listing
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
    for `auto` those of all installed agents, agent by agent.

    What an agent brings along without a key for it is left out, and what none of them has. A source that cannot be read
    offers nothing; why is said when a model is resolved.
    """
    agents = agents_of(agent or settings.agent, settings)
    choices = [
        ModelChoice(role)
        for role, model in known_roles(settings).items()
        if not agents or any(offers(each, model) for each in agents)
    ]
    for each in agents:
        choices += _of_agent(each, settings)
    if not agents:
        choices += [ModelChoice(model.ref) for model in settings_listing(settings.models).models]
    first: dict[str, ModelChoice] = {}
    for choice in choices:
        first.setdefault(choice.ref, choice)
    return tuple(first.values())


def _of_agent(agent: AgentChoice, settings: Settings) -> Iterator[ModelChoice]:
    for model in models_of(agent, settings).models:
        facts = (model.stands_for, context_words(model), price_words(model))
        yield ModelChoice(model.ref, agent.name, one_line(" ".join(filter(None, facts)), 80))


def refresh_choices(
    agent: str | None, settings: Settings, done: Callable[[], None], timeout: float = PATIENCE_S
) -> bool:
    """Ask those agents whose lists are a day old, while others go on or leave; False where there is none.

    `done` is called in another thread once all have answered, or have been ended.
    """
    asked = due(agents_of(agent or settings.agent, settings))
    if not asked:
        return False
    for each in asked:
        if known := model_list(each):
            known.begin(timeout)
    from threading import Thread

    def ask() -> None:
        from ..agents.model_refresh import refresh_apart

        try:
            refresh_apart(asked, timeout)
        except (OSError, UnicodeError):
            pass  # what was known before is known still
        done()

    Thread(target=ask, name="models", daemon=True).start()
    return True
