"""Rules that an agent can enforce, and the errors and warnings before anything is started."""

from __future__ import annotations

import pytest
from subdeck.core.agents.agent import AgentChoice, Wanted
from subdeck.core.agents.choice import settled
from subdeck.core.agents.claude.agent import OWN_TOOLS
from subdeck.core.agents.claude.program import TOOLS
from subdeck.core.agents.codex.permissions import fault_of_rule
from subdeck.core.errors import UsageError
from subdeck.core.permissions.rules import parse_rule
from subdeck.core.run.model import Permissions

CLAUDE = AgentChoice("claude", ("/bin/claude",), (*TOOLS, *OWN_TOOLS), True, excludes=True, kind="claude")
OFFLINE = AgentChoice("offline", ("/bin/x",), ("read", "grep"), False, kind="offline")


@pytest.mark.parametrize(
    ("rules", "warning"),
    [
        (Permissions(deny=("webfetch",)), "has no known tool webfetch; did you mean WebFetch?"),
        (Permissions(allow=("wirte",)), "did you mean write?"),
        (Permissions(ask=("mcp__shop__buy", "Notify", "WebFetch", "edit", "*")), ""),
    ],
)
def test_a_rule_for_a_tool_that_may_be_misspelt(rules: Permissions, warning: str) -> None:
    """A rule for an unknown tool has a warning if its name is similar to a known one."""
    said = settled(CLAUDE, Wanted(permissions=rules, talk=True))
    assert warning in "".join(said)
    assert bool(said) is bool(warning)


@pytest.mark.parametrize("rule", ["Glob", "ls"])
def test_a_rule_by_another_name_of_a_tool(rule: str) -> None:
    """A Claude Code tool has only one name in rules."""
    with pytest.raises(
        UsageError, match=r"permissions\.ask: claude cannot enforce .* (called find here|its find tool)"
    ):
        settled(CLAUDE, Wanted(permissions=Permissions(ask=(rule,)), talk=True))


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        (Permissions(ask=("read",)), "permissions.ask"),
        (Permissions(deny=("read(x)",)), "permissions.deny"),
        (Permissions(deny=("mcp__*",)), "permissions.deny"),
        (Permissions(deny=("read",)), "permissions.deny"),  # it cannot be started without a tool, and lists no tools
    ],
)
def test_a_run_that_is_not_talked_to_asks_nobody(rules: Permissions, field: str) -> None:
    """In a non-interactive run, a rule that must ask is refused, with the field, the rule and the way out."""
    with pytest.raises(UsageError, match="a non-interactive run cannot ask") as caught:
        settled(OFFLINE, Wanted(permissions=rules, talk=False))
    assert (field, True) == (caught.value.where, "deny whole tools by name" in caught.value.hint)
    assert settled(OFFLINE, Wanted(permissions=rules, talk=True)) == ()
    (unused,) = settled(OFFLINE, Wanted(permissions=Permissions(allow=("read",)), talk=False))
    assert "has no effect" in unused


@pytest.mark.parametrize(
    ("rule", "can"),
    [
        ("bash(rm *)", True),
        ("bash(=rm -rf build)", True),
        ("edit(src/**)", True),
        ("write", True),
        ("bash", False),
        ("bash(git push *)", False),
        ("bash(/bin/cat *)", False),
        ("bash(* --force)", False),
        ("bash(=ls -l)", False),
        ("read", False),
        ("*", False),
    ],
)
def test_what_codex_can_be_made_to_ask_about(rule: str, can: bool) -> None:
    """Edits, and commands that Codex doesn't trust."""
    assert can is (fault_of_rule(parse_rule(rule)) == "")
