"""Check which rules of a run its agent can enforce; a launch is refused if it cannot enforce one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..errors import UsageError, nearest_of
from ..permissions.rules import EDITING, READING, Rule, parse_rule
from ..run.model import Permissions
from ..run.tool_policy import SIMILAR
from .agent import AgentChoice, Wanted

WAYS_OUT = "remove the rule, or choose another agent (agent: pi can enforce all rules)"
_ONE_WAY = "a non-interactive run cannot ask"
_TALK = 'remove "interactive: false", deny whole tools by name, or choose an agent that accepts messages'


def check_rules(choice: AgentChoice, wanted: Wanted, fault_of_rule: Callable[[Rule], str]) -> tuple[str, ...]:
    """Return a sentence for each rule without effect. Raises UsageError for an ask or deny rule that cannot be
    enforced.

    `fault_of_rule` returns the reason why the agent cannot ask about a rule's subject.
    """
    permissions = wanted.permissions
    if permissions is None:
        return ()
    for field, texts in (("permissions.ask", permissions.ask), ("permissions.deny", permissions.deny)):
        for rule in map(parse_rule, texts):
            if _is_seen_to(rule, field, choice, wanted):
                continue
            if not wanted.talk:
                raise _refused(field, rule, choice, _ONE_WAY, _TALK)
            if fault := fault_of_rule(rule):
                raise _refused(field, rule, choice, fault, WAYS_OUT)
    return tuple(_without_effect(choice, permissions, talk=wanted.talk))


def _is_seen_to(rule: Rule, field: str, choice: AgentChoice, wanted: Wanted) -> bool:
    """Whether the rule removes the tool from the agent; whether the agent supports that is checked with the tools."""
    if field != "permissions.deny" or rule.pattern is not None or rule.tool.endswith("*") or not choice.takes_tools:
        return False
    return choice.excludes or wanted.tools.resolved is not None


def _without_effect(choice: AgentChoice, permissions: Permissions, *, talk: bool) -> Iterator[str]:
    if permissions.allow and not talk:
        yield f"permissions.allow has no effect: {choice.name} does not ask in a non-interactive run"
    known_tools = (*choice.tools, *EDITING, *READING, "bash")
    rules = map(parse_rule, (*permissions.allow, *permissions.ask, *permissions.deny))
    for tool in dict.fromkeys(
        rule.tool for rule in rules if rule.tool not in known_tools and not rule.tool.endswith("*")
    ):
        lower = {name.lower(): name for name in known_tools}  # if two names differ in case only, prefer subdeck's
        similar = [lower[name] for name in nearest_of(tool.lower(), lower, cutoff=SIMILAR)]
        if similar:
            yield f"permissions: {choice.name} has no known tool {tool}; did you mean {similar[0]}?"


def _refused(field: str, rule: Rule, choice: AgentChoice, why: str, hint: str) -> UsageError:
    what = f'{choice.name} cannot enforce "{rule.text}": {why}'
    return UsageError(what, where=field, hint=hint, code="permissions.not_enforceable")
