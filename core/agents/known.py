"""The agents that a run can be given, and what each of them is here: version and login, from files alone."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..agent_kinds import KINDS, NAMED_ONLY
from ..config.settings import Settings
from ..errors import AgentUnavailable
from .agent import AgentChoice
from .choice import choose_agent, login_of
from .login import UNKNOWN, Login, LoginState


class KnownAgent(Struct, frozen=True):
    name: str
    version: str = ""
    """Empty if it is not known, or if there is none."""
    login: Login = UNKNOWN
    problem: str = ""
    """Why it cannot be started here; empty if it can."""
    hint: str = ""
    """How that is fixed."""

    @property
    def is_here(self) -> bool:
        return not self.problem

    @property
    def words(self) -> str:
        """What it is, for a person: `2.1.330 · logged in`, `not usable here: codex is not on PATH`."""
        if self.problem:
            return f"not usable here: {self.problem}"
        if self.login.state is LoginState.UNNEEDED:
            return f"{self.login.words}, uses no model"
        return f"{self.version or 'version unknown'} · {self.login.words}"


def known_agents(settings: Settings) -> tuple[KnownAgent, ...]:
    """Return all agents that can be named, in the order of `auto`, then those of the settings; nothing is started."""
    return tuple(_known(name, settings) for name in _names(settings))


def described(choice: AgentChoice, settings: Settings) -> KnownAgent:
    """Return what an agent is that was chosen."""
    return KnownAgent(choice.name, choice.version or "", login_of(choice, settings))


def _names(settings: Settings) -> Iterator[str]:
    yield from (kind for kind in KINDS if kind != NAMED_ONLY)
    yield from (name for name in settings.agents if name not in KINDS or name == NAMED_ONLY)


def _known(name: str, settings: Settings) -> KnownAgent:
    try:
        return described(choose_agent(name, settings), settings)
    except AgentUnavailable as error:
        return KnownAgent(name, problem=error.what, hint=error.hint)
