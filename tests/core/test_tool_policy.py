"""Tool policy: what a list of tools means, and what is never handed on."""

from __future__ import annotations

import pytest
from subdeck.core.errors import UsageError
from subdeck.core.runs import Tools
from subdeck.core.tool_policy import DELEGATION_TOOLS, checked_tools, parse_tools, resolve_tools

OFFERED = ("read", "grep", "find", "ls")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("read,grep", ("read", "grep")),
        (" read , grep,\tfind ", ("read", "grep", "find")),
        ("read,,grep,", ("read", "grep")),
        ("read,read", ("read",)),
        ("mcp__x__y,a.b:c-d,_z,9", ("mcp__x__y", "a.b:c-d", "_z", "9")),
        ("", ()),
        (" , ", ()),
    ],
)
def test_a_line_of_tools(text: str, expected: tuple[str, ...]) -> None:
    """Commas separate the names; blanks, repeated names and stray commas do not matter."""
    assert expected == parse_tools(text)


@pytest.mark.parametrize(
    "name", ["-bash", "+bash", "re*", "a b", "$(x)", "a/b", "é", "a\x1b[0m", "[read]", ".x", "a\nb"]
)
def test_what_is_not_the_name_of_a_tool(name: str) -> None:
    """Patterns and signs are refused: `-bash` would mean all but bash to a newer pi."""
    with pytest.raises(UsageError, match="is not the name of a tool") as caught:
        parse_tools(f"read,{name}")

    assert "\x1b" not in str(caught.value)


def test_a_blank_name_in_a_list() -> None:
    """In a list a blank name is a mistake, not a stray comma."""
    with pytest.raises(UsageError, match='"" is not the name of a tool'):
        checked_tools(["read", " "])


def test_no_list_is_the_agents_own_set() -> None:
    """A preset without a tools field gives the child no flag at all."""
    assert Tools(policy="agent", resolved=None) == resolve_tools(None, OFFERED, closed=True)


def test_an_empty_list_is_no_tools() -> None:
    """What was written empty stays empty."""
    assert Tools(policy="allow", resolved=()) == resolve_tools((), OFFERED, closed=True)


def test_a_list_of_offered_tools() -> None:
    """The order of the preset is kept, and there is nothing to warn of."""
    assert Tools(policy="allow", resolved=("ls", "read")) == resolve_tools(("ls", "read"), OFFERED, closed=True)


@pytest.mark.parametrize(
    "name", ["Agent", "background_agent", "background_agent_status", "subagent", "subagent_finalize"]
)
def test_delegation_is_never_handed_on(name: str) -> None:
    """A child gets no tool that delegates, whatever the preset and the agent say; the warning names it."""
    expected = Tools(policy="allow", resolved=("read",), warnings=(f"{name} is left out: a child does not delegate",))

    assert name in DELEGATION_TOOLS
    assert expected == resolve_tools((name, "read"), (*OFFERED, name))


def test_an_agent_with_a_closed_set() -> None:
    """What it does not offer is left out, with the near names."""
    tools = resolve_tools(("Read", "read", "webfetch"), OFFERED, closed=True)

    assert ("read",) == tools.resolved
    assert (
        "Read is left out: the agent does not offer it; did you mean read?",
        "webfetch is left out: the agent does not offer it",
    ) == tools.warnings


def test_an_agent_with_extensions() -> None:
    """A name that is not built in is kept, since an extension may bring it, and is said."""
    tools = resolve_tools(("read", "webfetch"), OFFERED)

    assert ("read", "webfetch") == tools.resolved
    assert ("webfetch is not built in: an extension has to bring it",) == tools.warnings


def test_an_agent_of_which_nothing_is_known() -> None:
    """Without knowledge there is nothing to leave out or to warn of."""
    assert Tools(policy="allow", resolved=("anything",)) == resolve_tools(("anything",), None)


@pytest.mark.parametrize(
    ("allow", "offered", "closed", "hint"),
    [
        (("subagent", "Agent"), None, False, "name a tool that the agent offers"),
        (("bash", "write"), OFFERED, True, "the agent offers read, grep, find, ls; write an empty list for no tools"),
    ],
)
def test_nothing_left_of_a_list(
    allow: tuple[str, ...], offered: tuple[str, ...] | None, closed: bool, hint: str
) -> None:
    """A list that ends up empty is an error: it neither becomes "no tools" nor "all tools" by itself."""
    with pytest.raises(UsageError) as caught:
        resolve_tools(allow, offered, closed=closed)

    assert f"no tool is left of the list {', '.join(allow)}" == caught.value.what
    assert hint in caught.value.hint
