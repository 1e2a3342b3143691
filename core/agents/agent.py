"""The launching side of a kind of agent: its program, its capabilities, and how it applies a preset.

A kind's `agent` module has an `AGENT` that does this. Only `refresh` and `find_out` start a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from ..errors import UsageError
from ..models.catalog import LEVELS, Catalog, Listing, Model
from ..run.model import Permissions, PromptMode, Tools
from ..run.tool_policy import Offer
from .login import UNKNOWN, Login
from .model_list import TIMEOUT_S, ModelList

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ..permissions.rules import Rule
    from .program import Runtime


class Naming(StrEnum):
    """How to find an agent's conversation again."""

    FILE = "file"
    """In a subdeck file, whose path the agent gets."""
    GIVEN = "given"
    """The agent keeps it, under an id that subdeck chooses."""
    TAKEN = "taken"
    """The agent keeps it, under an id from its stream."""


class AgentChoice(Struct, frozen=True):
    """An agent of this machine, described without starting it."""

    name: str
    command: tuple[str, ...]
    """The program's absolute path, and its leading arguments."""
    tools: tuple[str, ...]
    """Names of its known tools."""
    offers_more: bool
    """Whether extensions may add tools."""
    default_tools: tuple[str, ...] = ()
    """Tools enabled by default."""
    levels: tuple[str, ...] = LEVELS
    """Supported thinking levels."""
    version: str | None = None
    """None if unknown."""
    note: str = ""
    """Why it is not the first choice; empty if it is."""
    excludes: bool = False
    """Whether it can exclude single tools."""
    leaves_servers: bool = False
    """Whether it can start without MCP servers."""
    kind: str = "pi"
    env: Mapping[str, str] = {}
    """Variables that the settings add to the agent's environment."""
    naming: Naming = Naming.FILE
    own_model: str = ""
    """The name it answers as, regardless of the requested model; empty if a model has to be chosen."""
    talks: bool = False
    """Whether its runs accept messages and ask questions."""
    takes_tools: bool = True
    """Whether its list of tools can be set."""
    tells_price: bool = True
    """Whether it reports costs before the run is over, or enforces the limit itself."""
    has_default_model: bool = False
    """Whether its own settings choose a model if none is named."""

    @property
    def offer(self) -> Offer:
        return Offer(
            self.tools,
            self.default_tools,
            closed=not self.offers_more,
            excludes=self.excludes,
            leaves_servers=self.leaves_servers,
            agent=self.name,
        )

    @property
    def label(self) -> str:
        """Label on the screen: `pi 0.73.1`, `offline (pi is not on PATH)`."""
        note = f" ({self.note})" if self.note else ""
        return f"{self.name} {self.version or ''}".rstrip() + note


class Wanted(Struct, frozen=True, kw_only=True):
    """A run's requirements for its agent, in the terms of presets."""

    where: str = ""
    """The preset's file; empty for a one-off run."""
    cwd: str = ""
    """The run's directory, if it is on this machine."""
    model: str = ""
    """`provider/id`; empty for the agent's default."""
    thinking: str | None = None
    tools: Tools = Tools()
    has_prompt: bool = False
    prompt_mode: PromptMode = PromptMode.APPEND
    context_files: bool | None = None
    project_resources: bool | None = None
    keeps_session: bool = True
    finalize: bool = False
    max_turns: int | None = None
    talk: bool = False
    """Whether the run takes messages and asks questions."""
    permissions: Permissions | None = None
    spends: tuple[str, ...] = ()
    """Names among `budget` and `max_tokens` that the call or preset sets."""
    caps: tuple[str, ...] = ()
    """Names among them that only the settings set."""

    def refused(self, field: str, what: str, hint: str) -> UsageError:
        """Return an error for a field, located at the preset's file or, without a file, at the field."""
        if self.where:
            return UsageError(f"{field}: {what}", where=self.where, hint=hint)
        return UsageError(what, where=field, hint=hint)


class Agent(Protocol):
    """The launching side of a kind of agent."""

    program: str
    """The default command; empty if there is none."""

    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        """Return the named agent's command with its program as an absolute path. Raises AgentUnavailable if the program
        is missing or not executable.
        """
        ...

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        """Describe the named agent by its command, as found here or on another machine."""
        ...

    def runtime(self, command: Sequence[str]) -> Runtime | None:
        """Return the interpreter that the program of the agent needs; None if it needs none."""
        ...

    def credentials(self, choice: AgentChoice) -> tuple[str, ...] | None:
        """Return where its keys or login are, without reading them; None if that is unknown for this agent."""
        ...

    def login(self, choice: AgentChoice) -> Login:
        """Return whether it is logged in, using only its files, its caches and the environment."""
        ...

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        """Whether it can use the provider's models here, judging by its credentials.

        An empty provider means a model without one, or no model.
        """
        ...

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        """Return a sentence for each requirement that is only advice to the agent or has no effect.

        Raises UsageError for a requirement that it cannot meet and that must not be dropped: a denied tool, another
        provider's model. The error names the field, the agent, and a way out.
        """
        ...

    def find_out(self, choice: AgentChoice, wanted: Wanted) -> None:
        """Get the information that `settle` lacks, before a launch; this may start the agent once. Raises
        AgentUnavailable if the agent does not answer.
        """
        ...

    def fault_of_rule(self, rule: Rule) -> str:
        """Return why it cannot ask about everything a permission rule names; empty if it can."""
        ...

    def offers(self, choice: AgentChoice, model: str) -> bool:
        """Whether a model, as a user wrote it, may be one of its models, regardless of credentials; empty: no model."""
        ...

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        """Yield its known models apart from the settings', the most certain first."""
        ...

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        """Return its known models, after the settings'; None if it accepts any."""
        ...

    def model_list(self, choice: AgentChoice) -> ModelList | None:
        """Return its saved list of models; None if it does not list models."""
        ...

    def refresh(self, choice: AgentChoice, timeout: float = TIMEOUT_S) -> Sequence[Model]:
        """Start it for its list of models, and save the list. Raises AgentUnavailable."""
        ...


class PlainAgent:
    """Base of the launching sides: an agent that accepts any model, needs no runtime and enforces no rules.

    A kind has to write `find`, `choose` and `settle` itself.
    """

    program = ""

    def runtime(self, command: Sequence[str]) -> Runtime | None:
        return None

    def credentials(self, choice: AgentChoice) -> tuple[str, ...] | None:
        return None

    def login(self, choice: AgentChoice) -> Login:
        return UNKNOWN

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        return True

    def find_out(self, choice: AgentChoice, wanted: Wanted) -> None:
        """Do nothing: all that `settle` needs is known."""

    def fault_of_rule(self, rule: Rule) -> str:
        return "it never asks for permission"

    def offers(self, choice: AgentChoice, model: str) -> bool:
        return True

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        yield from ()

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        return None

    def model_list(self, choice: AgentChoice) -> ModelList | None:
        return None

    def refresh(self, choice: AgentChoice, timeout: float = TIMEOUT_S) -> Sequence[Model]:
        return ()
