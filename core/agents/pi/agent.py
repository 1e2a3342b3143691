"""pi as launchers see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...models.catalog import LEVELS, Catalog, Listing, Model
from ..agent import Agent, AgentChoice, Wanted
from ..program import is_since
from .models import built_in_listing, cached_listing, list_key, models_json_listing, refresh_models
from .program import (
    DEFAULT_TOOLS,
    EXCLUDES_SINCE,
    MAX_THINKING_SINCE,
    NO_SERVERS_SINCE,
    TRUST_SINCE,
    builtin_tools,
    find_pi,
    pi_version,
)


class PiAgent:
    program = "pi"

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        command = find_pi(command)
        version = pi_version(command)
        return AgentChoice(
            name,
            command,
            builtin_tools(version),
            True,
            default_tools=DEFAULT_TOOLS,
            excludes=is_since(version, EXCLUDES_SINCE) is True,
            leaves_servers=is_since(version, NO_SERVERS_SINCE) is True,
            levels=thinking_levels(version),
            version=version,
            env=env,
        )

    def serves(self, provider: str) -> bool:
        return True

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        if wanted.project_resources is not False or is_since(choice.version, TRUST_SINCE):
            return ()
        others = "leaves out your own extensions, skills and prompt templates, too"
        return (f"project_resources: pi before 0.79 reads the project's .pi/settings.json all the same, and {others}",)

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        yield models_json_listing()
        yield cached_listing(choice.command)

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        return Catalog(
            (
                lambda: first,
                models_json_listing,
                lambda: cached_listing(choice.command),
                lambda: built_in_listing(choice.command),
            ),
            refresh="subdeck models --refresh asks pi for the models it has",
        )

    def list_key(self, choice: AgentChoice) -> object:
        return list_key(choice.command)

    def refresh(self, choice: AgentChoice) -> Sequence[Model]:
        return refresh_models(choice.command)


def thinking_levels(version: str | None) -> tuple[str, ...]:
    """Return the levels that this version of pi takes; without a known version, all."""
    return LEVELS[:-1] if is_since(version, MAX_THINKING_SINCE) is False else LEVELS


AGENT: Agent = PiAgent()
