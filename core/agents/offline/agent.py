"""The launching side of the offline agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...models.catalog import Catalog, Listing, Model
from ..agent import Agent, AgentChoice, Wanted
from ..login import Login, LoginState
from ._program import MODEL, TOOL_NAMES, offline_command

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ...permissions.rules import Rule


class OfflineAgent:
    program = ""

    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        return offline_command()

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        return AgentChoice(
            name,
            tuple(command),
            TOOL_NAMES,
            False,
            default_tools=TOOL_NAMES,
            kind="offline",
            env=env,
            own_model=MODEL,
            talks=True,
        )

    def credentials(self, choice: AgentChoice) -> None:
        return None

    def login(self, choice: AgentChoice) -> Login:
        return Login(LoginState.UNNEEDED)

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        return True

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        return ()

    def find_out(self, choice: AgentChoice, wanted: Wanted) -> None:
        """Do nothing: `settle` needs no further information."""

    def fault_of_rule(self, rule: Rule) -> str:
        return ""  # it asks before each tool call

    def offers(self, choice: AgentChoice, model: str) -> bool:
        return True  # it accepts any name, and uses no model

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        yield from ()

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        return None

    def model_list(self, choice: AgentChoice) -> None:
        return None

    def refresh(self, choice: AgentChoice, timeout: float = 0.0) -> Sequence[Model]:
        return ()


AGENT: Agent = OfflineAgent()
