"""The launching side of ACP agents.

Models and modes are read from a session without a task; an agent that requires a login for a session cannot list them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from ...errors import AgentUnavailable
from ...models.catalog import Catalog, Listing, Model, split_thinking
from ...run.model import PromptMode, ToolPolicy
from ...run.outcome import FINALIZE_TOOL
from ...text.plain import one_line
from .._json_lines import decode, items, mapping, string
from .._model_source import REFRESH, AsksForModels, price_in, refused
from ..agent import Agent, AgentChoice, Naming, Wanted
from ..program import executable
from ._programs import READ_ONLY_MODES, SHOWN, Program, bridge_command, program_in, read_only_mode

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ...permissions.rules import Rule

READERS = frozenset({"read", "grep", "find", "ls"})
"""Tools that change nothing."""
TOOLS = (*sorted(READERS), "bash", "edit", "write")
WRITERS = frozenset({"edit", "write"})
LOOKING = READERS | {"bash"}
"""A list of only these selects a mode from `READ_ONLY_MODES`, as does denying the writers."""
ASKING_S = 30.0
"""Seconds an agent may take to list its modes before a launch."""
_LATE = "reports its usage only after each turn"
SAME_CALL_S = 10.0
"""Seconds that a failure to list modes counts, so that tasks launched together don't each wait for it."""


class AcpAgent(AsksForModels):
    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        if find_spec("acp") is None:
            raise AgentUnavailable(
                "the client of the Agent Client Protocol is not installed",
                where=f"agents.{name}",
                hint='install it with: pip install "subdeck[acp]"',
            )
        return executable(
            command,
            where=f"agents.{name}.command",
            install=f"add its program to the settings: agents: {{{name}: {{kind: acp, command: [gemini, --acp]}}}}",
        )

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        return AgentChoice(
            *(name, tuple(command), TOOLS, False),
            excludes=True,  # so that a denial arrives complete, and is refused
            kind="acp",
            env=env,
            naming=Naming.TAKEN,
            has_default_model=True,
            takes_tools=False,
            tells_price=False,
            talks=True,
        )

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        return not provider or any(
            model.ref.startswith(f"{provider.lower()}/") for model in self.last_listing(choice).models
        )

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        program = program_in(choice.command)
        if problem := _problem(wanted) or _unreported(program, wanted) or self._mode_problem(choice, wanted):
            field, what, hint = problem
            raise wanted.refused(field, f"{choice.name} {what}", hint)
        advice: list[str] = []
        if wanted.has_prompt:
            advice.append("prompt: the protocol has no system prompt, so the prompt is put before the task")
        if wanted.permissions and (wanted.permissions.ask or wanted.permissions.deny):
            advice.append(f"permissions: {choice.name} decides what it asks for, and rules apply only to its requests")
        if _is_read_only(wanted):
            if self._modes(choice) is None:
                note = f"the launch requires the read-only or plan mode of {choice.name}"
                advice.append(f"{_field(wanted)}: {note}")
            elif wanted.tools.policy is ToolPolicy.DENY or "bash" in _listed(wanted):
                note = f"{choice.name} runs in its read-only or plan mode, in which it may refuse to use bash"
                advice.append(f"{_field(wanted)}: {note}")
        if wanted.caps and not program.tells_usage:
            advice.append(
                f"{' and '.join(wanted.caps)} from the settings: {choice.name} {_LATE}, so they cannot stop a turn"
            )
        if wanted.context_files is not None:
            advice.append("context_files: the agent itself decides which context files it reads")
        return tuple(advice)

    def find_out(self, choice: AgentChoice, wanted: Wanted) -> None:
        """Request the agent's modes, if the tools depend on them. Raises AgentUnavailable."""
        if not _problem(wanted) and _is_read_only(wanted) and self._modes(choice) is None:
            try:
                self._ask_for_modes(choice)
            except AgentUnavailable as error:
                what = f"the preset's tools require a mode of {choice.name}, which could not list its modes: "
                raise AgentUnavailable(
                    what + error.what.partition(": ")[2], where=error.where, hint=error.hint
                ) from error

    def _ask_for_modes(self, choice: AgentChoice) -> None:
        saved_list = self.model_list(choice)
        kept = saved_list.kept()
        if kept.problem and kept.asked_with == saved_list.key and time.time() - kept.asked_at < SAME_CALL_S:
            raise AgentUnavailable(kept.problem, where=" ".join(choice.command), hint="try that command")
        self.refresh(choice, ASKING_S)

    def _modes(self, choice: AgentChoice) -> tuple[str, ...] | None:
        """Return the modes of this version of the agent; None if they were not requested."""
        saved_list = self.model_list(choice)
        kept = saved_list.kept()
        return kept.modes if kept.key == saved_list.key else None

    def _mode_problem(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, str, str] | None:
        modes = self._modes(choice)
        if modes is None or not _is_read_only(wanted) or read_only_mode(modes):
            return None
        has = f"only {', '.join(map(one_line, modes[:SHOWN]))}" if modes else "no modes"
        what = f"has {has}, but this requires a mode called {' or '.join(READ_ONLY_MODES)}"
        return _field(wanted), what, f"remove {_field(wanted)} from the preset, or choose another agent"

    def fault_of_rule(self, rule: Rule) -> str:
        if rule.tool in READERS or rule.tool.endswith("*"):
            return "ACP agents ask before changes, never before reading"
        return ""

    def offers(self, choice: AgentChoice, model: str) -> bool:
        name = split_thinking(model)[0]
        refs = {name, name.partition("/")[2]}
        return not name or any(listed.ref in refs for listed in self.last_listing(choice).models)

    def ask_all(self, choice: AgentChoice, timeout: float) -> tuple[Sequence[Model], Sequence[str]]:
        return asked(choice, timeout)

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        if not self.last_listing(choice).models:
            return None
        return Catalog((lambda: self.last_listing(choice),), refresh=REFRESH.format(choice.name), takes_others=True)


def _field(wanted: Wanted) -> str:
    """Return the name of the field that limits the tools."""
    return "denied_tools" if wanted.tools.policy is ToolPolicy.DENY else "tools"


def _listed(wanted: Wanted) -> list[str]:
    return [name for name in wanted.tools.resolved or () if name != FINALIZE_TOOL]


def _is_read_only(wanted: Wanted) -> bool:
    """Whether the tools are limited to those of a read-only mode."""
    tools = wanted.tools
    if tools.policy is ToolPolicy.DENY and tools.resolved is None:
        return bool(tools.excluded) and WRITERS.issuperset(tools.excluded)
    listed = _listed(wanted)
    return tools.policy is not ToolPolicy.AGENT and LOOKING.issuperset(listed) and not READERS.isdisjoint(listed)


def _unreported(program: Program, wanted: Wanted) -> tuple[str, str, str] | None:
    """Return field, sentence and way out for a requirement that the program's reports or MCP support don't cover."""
    if wanted.spends and not program.tells_usage:
        return wanted.spends[0], f"{_LATE}, so such a limit could not stop a turn", "use timeout, or another agent"
    if wanted.finalize and not program.takes_servers:
        what = "does not pass the tool for the structured result to its model"
        return "structured_result", what, "remove structured_result: the answer is the last message"
    return None


def _problem(wanted: Wanted) -> tuple[str, str, str] | None:
    """Return field, sentence and way out for a requirement that no ACP agent can meet."""
    tools = wanted.tools
    if tools.policy is ToolPolicy.DENY and not _is_read_only(wanted):
        return (
            "denied_tools",
            "can only deny edit and write",
            "deny these, or list read, grep, find, ls",
        )
    if tools.policy is ToolPolicy.ALLOW and not _is_read_only(wanted):
        hint = "list some of read, grep, find, ls and bash, or remove tools"
        return "tools", "only supports a read-only list of tools", hint
    if wanted.has_prompt and wanted.prompt_mode is PromptMode.REPLACE:
        return "prompt_mode", "keeps its own system prompt", "write prompt_mode: append"
    if not wanted.keeps_session:
        return "session", "keeps its conversations itself", 'remove "session: none"'
    if wanted.project_resources is False:
        return "project_resources", "cannot ignore the project's settings", "remove the field"
    if wanted.max_turns is not None:
        return "max_turns", "does not report its turns", "use timeout"
    return None


AGENT: Agent = AcpAgent()


# --- models ----------------------------------------------------------------------------------------------------------


def asked(choice: AgentChoice, timeout: float) -> tuple[Sequence[Model], Sequence[str]]:
    """Start the agent and return its models and modes; empty if it offers no choice. Raises AgentUnavailable, and the
    errors of `ask`.
    """
    from .._query import ask  # most listings of models start no agent

    answer = ask(bridge_command({"task": "none"}, choice.command), timeout=timeout, env=choice.env)
    if answer.code:
        last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("Error: ")
        raise refused(choice, last or f"it ended with exit code {answer.code}")
    results = [mapping(mapping(decode(line)).get("result")) for line in answer.stdout.splitlines()]
    models = _last_option(results, "model") or _older_models(results)
    modes = [string(mode.get("id")) for result in results for mode in _modes(result)]
    modes += [string(value.get("value")) for value in _flat(_last_option(results, "mode"))]
    return tuple(_models(models, choice.name)), tuple(dict.fromkeys(filter(None, modes)))


def _last_option(results: Sequence[dict[str, Any]], category: str) -> object:
    """Return the latest values of a category's option; None if there is none."""
    options = [option for result in results for option in map(mapping, items(result.get("configOptions")))]
    return next((option.get("options") for option in reversed(options) if option.get("category") == category), None)


def _older_models(results: Sequence[dict[str, Any]]) -> object:
    """Return the models in the older form, as values of an option."""
    listed = [items(mapping(result.get("models")).get("availableModels")) for result in results]
    last = [models for models in listed if models][-1:]
    return [{"value": string(mapping(model).get("modelId"))} for models in last for model in models]


def _modes(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from map(mapping, items(mapping(result.get("modes")).get("availableModes")))


def _flat(options: object) -> Iterator[dict[str, Any]]:
    """Yield the values of options, which may be in groups."""
    for option in map(mapping, items(options)):
        if "options" in option:
            yield from _flat(option["options"])
        else:
            yield option


def _models(options: object, source: str) -> Iterator[Model]:
    for option in _flat(options):
        if value := one_line(string(option.get("value"))):
            provider, slash, name = value.partition("/")
            price = price_in(string(option.get("description")))
            yield Model(provider if slash else "", name if slash else value, source, price=price)
