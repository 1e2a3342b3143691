"""The launching side of pi."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from ... import paths
from ...models.catalog import LEVELS, Catalog, Listing, Model
from ...system import files
from .._model_source import REFRESH, AsksForModels
from ..agent import Agent, AgentChoice, Wanted
from ..login import LOGGED_IN, UNKNOWN, Login, LoginState, read_json
from ..model_list import ModelList
from ..program import Runtime, is_since
from ._models import asked_models, built_in_listing, last_listing_of, models_json_listing, pi_list
from .program import (
    DEFAULT_TOOLS,
    EXCLUDES_SINCE,
    MAX_THINKING_SINCE,
    NO_SERVERS_SINCE,
    PACKAGES,
    TRUST_SINCE,
    builtin_tools,
    find_pi,
    found_credentials,
    needed_node,
    pi_version,
)

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ...permissions.rules import Rule


class PiAgent(AsksForModels):
    program = "pi"

    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        return find_pi(command, name)

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        version = pi_version(command)
        return AgentChoice(
            name,
            tuple(command),
            builtin_tools(version),
            True,
            default_tools=DEFAULT_TOOLS,
            excludes=is_since(version, EXCLUDES_SINCE) is True,
            leaves_servers=is_since(version, NO_SERVERS_SINCE) is True,
            levels=thinking_levels(version),
            version=version,
            env=env,
            talks=True,
        )

    def runtime(self, command: Sequence[str]) -> Runtime:
        return Runtime("node", needed_node(command), f"npm install -g {PACKAGES[1]}")

    def credentials(self, choice: AgentChoice) -> tuple[str, ...] | None:
        return found_credentials({**os.environ, **choice.env}) or None  # there may be others in its models.json

    def login(self, choice: AgentChoice) -> Login:
        return pi_login({**os.environ, **choice.env}, models_json_listing(), last_listing_of(choice))

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        return True

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        if wanted.project_resources is not False or is_since(choice.version, TRUST_SINCE):
            return ()
        side_effect = "also ignores your own extensions, skills and prompt templates"
        return (f"project_resources: pi before 0.79 still reads the project's .pi/settings.json, and {side_effect}",)

    def fault_of_rule(self, rule: Rule) -> str:
        return ""  # it asks before each tool call

    def offers(self, choice: AgentChoice, model: str) -> bool:
        return True

    def model_list(self, choice: AgentChoice) -> ModelList:
        return pi_list(choice)

    def ask(self, choice: AgentChoice, timeout: float) -> Sequence[Model]:
        return asked_models(choice, timeout)

    def last_listing(self, choice: AgentChoice) -> Listing:
        return last_listing_of(choice)

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        yield models_json_listing()
        yield last_listing_of(choice)

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        return Catalog(
            (
                lambda: first,
                models_json_listing,
                lambda: last_listing_of(choice),
                lambda: built_in_listing(choice.command),
            ),
            refresh=REFRESH.format(choice.name),
        )


def thinking_levels(version: str | None) -> tuple[str, ...]:
    """Return the levels of this version of pi; all if the version is unknown."""
    return LEVELS[:-1] if is_since(version, MAX_THINKING_SINCE) is False else LEVELS


AGENT: Agent = PiAgent()


# --- login -----------------------------------------------------------------------------------------------------------

_OTHER_KEYS = ("AWS_", "GOOGLE_", "AZURE_")
"""Prefixes of variables for services whose login is not a single key."""
OURS = "subdeck.ts"
"""The extension from `subdeck connect pi`, which adds no models."""
_OUT = Login(LoginState.OUT, hint="run pi, then /login, or set a provider's key")


def pi_login(environment: Mapping[str, str], set_up: Listing, saved: Listing) -> Login:
    """Return whether pi has a key or login for any provider; `set_up` is models.json, `saved` the saved list."""
    if key := next((name for name in sorted(environment) if name.endswith("_API_KEY") and environment[name]), ""):
        return Login(LoginState.IN, key)
    logins = read_json(os.path.join(paths.agent_dir(), "auth.json"))
    if logins or set_up.models or (saved.complete and saved.models):
        return LOGGED_IN
    if saved.complete:
        return _OUT
    has_others = any(name.endswith("_TOKEN") or name.startswith(_OTHER_KEYS) for name in environment)
    has_extensions = bool(set(files.names(os.path.join(paths.agent_dir(), "extensions"))) - {OURS})
    return UNKNOWN if logins is None or set_up.problem or has_others or has_extensions else _OUT
