"""Which agent a run gets, and what is known of it without starting it."""

from __future__ import annotations

from msgspec import Struct

from ..config.settings import Settings
from ..errors import AgentUnavailable, nearest
from ..models.catalog import LEVELS, Catalog, settings_listing
from ..run.tool_policy import Offer
from .base import TOOL_NAMES, AgentKind, offline_command
from .pi.models import built_in_listing, cached_listing, models_json_listing
from .pi.program import (
    DEFAULT_TOOLS,
    EXCLUDES_SINCE,
    MAX_THINKING_SINCE,
    NO_SERVERS_SINCE,
    TRUST_SINCE,
    builtin_tools,
    find_pi,
    is_since,
    pi_version,
)


class AgentChoice(Struct, frozen=True):
    name: str
    command: tuple[str, ...]
    """The program, absolute, and its leading arguments."""
    tools: tuple[str, ...]
    """Names it is known to offer."""
    offers_more: bool
    """True where extensions may bring further tools."""
    default_tools: tuple[str, ...] = ()
    """Those it offers when it is told nothing."""
    levels: tuple[str, ...] = LEVELS
    """The thinking levels it takes."""
    version: str | None = None
    """None where it is not known."""
    note: str = ""
    """Why it is not the first choice; empty where it is."""
    excludes: bool = False
    """Whether it can be told to offer all but some."""
    leaves_servers: bool = False
    """Whether it can be told to start no MCP servers."""

    @property
    def offer(self) -> Offer:
        return Offer(
            self.tools,
            self.default_tools,
            closed=not self.offers_more,
            excludes=self.excludes,
            leaves_servers=self.leaves_servers,
        )

    @property
    def label(self) -> str:
        """What the screen says: `pi 0.73.1`, `offline (pi is not on PATH)`."""
        note = f" ({self.note})" if self.note else ""
        return f"{self.name} {self.version or ''}".rstrip() + note


def choose_agent(name: str, settings: Settings) -> AgentChoice:
    """Return the agent of that name; `auto` is pi where it is found, else the offline agent.

    Raises AgentUnavailable for a program that is missing or cannot be executed, and for an unknown name.
    """
    if name == AgentKind.OFFLINE:
        return _offline()
    if name == "auto":
        try:
            return _pi(AgentKind.PI, settings)
        except AgentUnavailable as error:
            return _offline(note=f"pi: {error.what}" if error.where != "agents.pi.command" else error.what)
    if name == AgentKind.PI or name in settings.agents:
        return _pi(name, settings)
    known = ("auto", *AgentKind, *settings.agents)
    hint = nearest(name, known) or f"known: {', '.join(known)}"
    raise AgentUnavailable(f'no agent is called "{name}"', where="agent", hint=hint)


def _pi(name: str, settings: Settings) -> AgentChoice:
    own = settings.agents.get(name)
    command = find_pi(own.command if own else ("pi",))
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
    )


def thinking_levels(version: str | None) -> tuple[str, ...]:
    """Return the levels that this version of pi takes; without a known version, all."""
    return LEVELS[:-1] if is_since(version, MAX_THINKING_SINCE) is False else LEVELS


def without_project_resources(agent: str, version: str | None) -> tuple[str, ...]:
    """Say what differs where this agent is told to load nothing of the project; `agent` is its name."""
    if AgentKind.of(agent) is AgentKind.OFFLINE or is_since(version, TRUST_SINCE):
        return ()
    others = "leaves out your own extensions, skills and prompt templates, too"
    return (f"project_resources: pi before 0.79 reads the project's .pi/settings.json all the same, and {others}",)


def _offline(note: str = "") -> AgentChoice:
    return AgentChoice(AgentKind.OFFLINE, offline_command(), TOOL_NAMES, False, default_tools=TOOL_NAMES, note=note)


def catalog_of(choice: AgentChoice, settings: Settings) -> Catalog | None:
    """Return the models known of an agent without starting it; None for one that takes any."""
    if choice.name == AgentKind.OFFLINE:
        return None
    return Catalog(
        (
            lambda: settings_listing(settings.models),
            models_json_listing,
            lambda: cached_listing(choice.command),
            lambda: built_in_listing(choice.command),
        ),
        refresh="subdeck models --refresh asks pi for the models it has",
    )
