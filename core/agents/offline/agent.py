"""The offline agent as launchers see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...models.catalog import Catalog, Listing, Model
from ..agent import Agent, AgentChoice, Wanted
from ..login import Login, LoginState
from ._program import MODEL, TOOL_NAMES, offline_command

TYPE_CHECKING = False  # as typing's
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
        """Do nothing: all that `settle` needs to know is known."""

    def fault_of_rule(self, rule: Rule) -> str:
        return ""  # each call of a tool is asked about before it is made

    def offers(self, choice: AgentChoice, model: str) -> bool:
        return True  # it uses none, whichever is named

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        yield from ()

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        return None

    def model_list(self, choice: AgentChoice) -> None:
        return None

    def refresh(self, choice: AgentChoice, timeout: float = 0.0) -> Sequence[Model]:
        return ()


AGENT: Agent = OfflineAgent()
