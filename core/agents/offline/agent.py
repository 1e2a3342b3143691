"""The launching side of the offline agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..agent import Agent, AgentChoice, PlainAgent, Wanted
from ..login import Login, LoginState
from ._program import MODEL, TOOL_NAMES, offline_command

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ...permissions.rules import Rule


class OfflineAgent(PlainAgent):
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

    def login(self, choice: AgentChoice) -> Login:
        return Login(LoginState.UNNEEDED)

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        return ()

    def fault_of_rule(self, rule: Rule) -> str:
        return ""  # it asks before each tool call


AGENT: Agent = OfflineAgent()
