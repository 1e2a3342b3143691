"""What launchers ask of a kind of agent: where its program is, what it has to offer, and what it makes of a preset.

A kind's `agent` module has an `AGENT` that does this. Nothing here starts a program, but `refresh` and `find_out`.
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
from .model_list import TIMEOUT_S, ModelList

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from ..permissions.rules import Rule
    from .login import Login


class Naming(StrEnum):
    """How the conversation of a child is found again."""

    FILE = "file"
    """It is a file of ours, which the child is told."""
    GIVEN = "given"
    """The agent keeps it, by an id that we make up."""
    TAKEN = "taken"
    """The agent keeps it, by an id that its stream tells."""


class AgentChoice(Struct, frozen=True):
    """An agent of this machine, as far as it is known without starting it."""

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
    kind: str = "pi"
    env: Mapping[str, str] = {}
    """What the settings add to the environment of its children."""
    naming: Naming = Naming.FILE
    own_model: str = ""
    """What it answers as, whatever model it is asked for; empty where a model has to be chosen."""
    talks: bool = False
    """Whether its children take messages and ask while they run."""
    takes_tools: bool = True
    """Whether it can be told which tools its child has."""
    tells_price: bool = True
    """Whether it tells what its model costs, before the run is over or by ending it itself."""
    has_default_model: bool = False
    """Whether it takes a model by its own settings where none is named."""

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
        """What the screen says: `pi 0.73.1`, `offline (pi is not on PATH)`."""
        note = f" ({self.note})" if self.note else ""
        return f"{self.name} {self.version or ''}".rstrip() + note


class Wanted(Struct, frozen=True, kw_only=True):
    """What a run asks of its agent, each in the words of presets."""

    where: str = ""
    """The file of the preset; empty for an ad hoc run."""
    cwd: str = ""
    """Its directory, where that is one of this machine."""
    model: str = ""
    """`provider/id`; empty where the agent takes its own default."""
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
    """Whether its child takes messages and asks while it runs."""
    permissions: Permissions | None = None
    spends: tuple[str, ...] = ()
    """Those of `budget` and `max_tokens` that call or preset set."""
    caps: tuple[str, ...] = ()
    """Those that only the settings set."""

    def refused(self, field: str, what: str, hint: str) -> UsageError:
        """Return the error of a field, at the file of the preset or, without one, at the field itself."""
        if self.where:
            return UsageError(f"{field}: {what}", where=self.where, hint=hint)
        return UsageError(what, where=field, hint=hint)


class Agent(Protocol):
    """The launching side of a kind of agent."""

    program: str
    """Its command where the settings name none; empty for one that is no program of the user's."""

    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        """Return the command of the agent of that name with its program as an absolute path. Raises AgentUnavailable
        where it is missing or cannot be executed.
        """
        ...

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        """Describe the agent of that name by its command, which was found here or is one of other machines."""
        ...

    def credentials(self, choice: AgentChoice) -> tuple[str, ...] | None:
        """Return where keys or a login of it are seen, without a look at what they are; None for an agent of which that
        is not known.
        """
        ...

    def login(self, choice: AgentChoice) -> Login:
        """Return whether it is logged in, from its files, its caches and the environment alone."""
        ...

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        """Tell whether a model of the provider can be had through it here, as far as its credentials are seen.

        The provider is empty for a model without one, and where no model is named.
        """
        ...

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        """Return what of the wish is only advice to the agent, or has no effect: a sentence each.

        Raises UsageError for what cannot be had from it and must not be dropped: a tool that is denied, a model of
        another provider. The error says which field, which agent, and what to do.
        """
        ...

    def find_out(self, choice: AgentChoice, wanted: Wanted) -> None:
        """Learn what `settle` needs to know of it and does not; a launch calls this first, and it may start the agent
        once. Raises AgentUnavailable where the agent does not tell.
        """
        ...

    def fault_of_rule(self, rule: Rule) -> str:
        """Say why it cannot be made to ask about all that a rule of permissions names; empty where it can."""
        ...

    def offers(self, choice: AgentChoice, model: str) -> bool:
        """Tell whether a model, as somebody wrote it, may be one of its, whatever its credentials; empty for none."""
        ...

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        """Yield what models are known of it beside those of the settings, the most certain first."""
        ...

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        """Return the models known of it, after those of the settings; None for an agent that takes any."""
        ...

    def model_list(self, choice: AgentChoice) -> ModelList | None:
        """Return the list that it tells itself, as it is kept; None where it has none."""
        ...

    def refresh(self, choice: AgentChoice, timeout: float = TIMEOUT_S) -> Sequence[Model]:
        """Start it for its list of models, and keep that. Raises AgentUnavailable."""
        ...
