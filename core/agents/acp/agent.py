"""An agent that speaks the Agent Client Protocol, as launchers see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from ...errors import AgentUnavailable, UsageError
from ...models.catalog import Catalog, Listing, Model, split_thinking
from ...run.model import PromptMode, ToolPolicy
from ...run.outcome import FINALIZE_TOOL
from ..agent import Agent, AgentChoice, Naming, Wanted
from ..login import UNKNOWN, Login
from ..model_source import REFRESH, AsksForModels
from ..program import executable
from .models import asked_models

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from ...run.permissions import Rule

READERS = frozenset({"read", "grep", "find", "ls"})
"""Tools that change nothing: a list of them alone is asked for as the agent's mode `read-only`."""
TOOLS = (*sorted(READERS), "bash", "edit", "write")


class AcpAgent(AsksForModels):
    program = ""

    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        if find_spec("acp") is None:
            raise AgentUnavailable(
                "the client of the Agent Client Protocol is not installed",
                where=f"agents.{name}",
                hint='install it beside subdeck: pip install "subdeck[acp]"',
            )
        return executable(
            command,
            where=f"agents.{name}.command",
            install=f"name its program in the settings: agents: {{{name}: {{kind: acp, command: [gemini, --acp]}}}}",
        )

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        return AgentChoice(
            *(name, tuple(command), TOOLS, False),
            excludes=True,  # so that a denial comes to us whole, and is refused
            kind="acp",
            env=env,
            naming=Naming.TAKEN,
            has_default_model=True,
            takes_tools=False,
            tells_price=False,
            talks=True,
        )

    def credentials(self, choice: AgentChoice) -> None:
        return None

    def login(self, choice: AgentChoice) -> Login:
        return UNKNOWN  # each keeps it elsewhere

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        return False  # it is taken by name only: which models it has is not known before it runs

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        if problem := _problem(wanted):
            field, what, hint = problem
            raise UsageError(f"{field}: {choice.name} {what}", where=wanted.where or field, hint=hint)
        advice: list[str] = []
        if wanted.has_prompt:
            advice.append("prompt: the protocol has no place for it, so it is put before the task")
        if wanted.permissions and (wanted.permissions.ask or wanted.permissions.deny):
            advice.append(f"permissions: {choice.name} decides what it asks about, and rules hold for that alone")
        if wanted.context_files is not None:
            advice.append("context_files: which files of the directory it reads is the agent's own affair")
        return tuple(advice)

    def fault_of_rule(self, rule: Rule) -> str:
        if rule.tool in READERS or rule.tool.endswith("*"):
            return "such agents ask about what changes something, and never about reading"
        return ""

    def offers(self, choice: AgentChoice, model: str) -> bool:
        name = split_thinking(model)[0]
        wanted = {name, name.partition("/")[2]}
        return not name or any(told.ref in wanted for told in self.told(choice).models)

    def ask(self, choice: AgentChoice, timeout: float) -> Sequence[Model]:
        return asked_models(choice, timeout)

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        if not self.told(choice).models:
            return None
        return Catalog((lambda: self.told(choice),), refresh=REFRESH.format(choice.name), takes_others=True)


def _problem(wanted: Wanted) -> tuple[str, str, str] | None:
    """Return field, sentence and way out for what no such agent can be held to."""
    tools = wanted.tools
    if tools.policy is ToolPolicy.DENY:
        return "denied_tools", "cannot be told to leave tools out", "list the tools instead: read, grep, find, ls"
    listed = [name for name in tools.resolved or () if name != FINALIZE_TOOL]
    if tools.policy is ToolPolicy.ALLOW and not (listed and READERS.issuperset(listed)):
        return "tools", "takes no list of tools but one that only reads", "list read, grep, find, ls, or leave it out"
    if wanted.has_prompt and wanted.prompt_mode is PromptMode.REPLACE:
        return "prompt_mode", "keeps its own system prompt", "write prompt_mode: append"
    if not wanted.keeps_session:
        return "session", "keeps its conversations itself", 'remove "session: none"'
    if wanted.project_resources is False:
        return "project_resources", "cannot be told to leave the project's settings alone", "remove the field"
    if wanted.max_turns is not None:
        return "max_turns", "does not say how many turns it took", "use timeout"
    return None


AGENT: Agent = AcpAgent()
