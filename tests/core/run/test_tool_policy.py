"""Tool policy: the meaning of a tool list, and the tools that are never passed on."""

from __future__ import annotations

import pytest
from subdeck.core.errors import UsageError
from subdeck.core.run.model import Tools
from subdeck.core.run.outcome import FINALIZE_TOOL
from subdeck.core.run.tool_policy import (
    DELEGATION_TOOLS,
    Offer,
    checked_tools,
    left_out,
    parse_tools,
    resolve_tools,
    with_finalize,
)

OFFERED = ("read", "grep", "find", "ls")
CLOSED = Offer(OFFERED, OFFERED, closed=True)
OPEN = Offer((*OFFERED, "bash", "edit", "write"), ("read", "bash", "edit", "write"))
UNKNOWN = Offer()


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
    """Commas separate the names; whitespace, repeated names and stray commas do not matter."""
    assert expected == parse_tools(text)


@pytest.mark.parametrize(
    "name", ["-bash", "+bash", "re*", "a b", "$(x)", "a/b", "é", "a\x1b[0m", "[read]", ".x", "a\nb"]
)
def test_what_is_not_the_name_of_a_tool(name: str) -> None:
    """Patterns and signs are refused: a newer pi would read `-bash` as all tools but bash."""
    with pytest.raises(UsageError, match="is not the name of a tool") as caught:
        parse_tools(f"read,{name}")

    assert "\x1b" not in str(caught.value)


def test_a_blank_name_in_a_list() -> None:
    """A blank name in a list is a mistake, not a stray comma."""
    with pytest.raises(UsageError, match='"" is not the name of a tool'):
        checked_tools(["read", " "])


def test_no_list_is_the_agents_own_set() -> None:
    """Without a tools field in the preset the agent gets no flag."""
    assert Tools(policy="agent", resolved=None) == resolve_tools(None, offer=CLOSED)


def test_an_empty_list_is_no_tools() -> None:
    """An empty list stays empty."""
    assert Tools(policy="allow", resolved=()) == resolve_tools((), offer=CLOSED)


def test_a_list_of_offered_tools() -> None:
    """A list of available tools keeps the preset's order and gets no warning."""
    assert Tools(policy="allow", resolved=("ls", "read")) == resolve_tools(("ls", "read"), offer=CLOSED)


@pytest.mark.parametrize(
    "name",
    ["Agent", "background_agent", "background_agent_status", "background_agent_send", "subagent", "subagent_finalize"],
)
def test_delegation_is_never_handed_on(name: str) -> None:
    """An agent never gets a delegation tool, even if its preset lists it and it has it; a warning names the tool."""
    expected = Tools(policy="allow", resolved=("read",), warnings=(f"{name} is left out: a subagent cannot delegate",))

    assert name in DELEGATION_TOOLS
    assert expected == resolve_tools((name, "read"), offer=Offer((*OFFERED, name)))


def test_an_agent_with_a_closed_set() -> None:
    """A tool that the agent does not have is dropped, and similar names are suggested."""
    tools = resolve_tools(("Read", "read", "webfetch"), offer=CLOSED)

    assert ("read",) == tools.resolved
    assert (
        "Read is left out: the agent does not have it; did you mean read?",
        "webfetch is left out: the agent does not have it",
    ) == tools.warnings


def test_an_agent_with_extensions() -> None:
    """A name that is not built in is kept with a warning, because an extension may provide it."""
    tools = resolve_tools(("read", "webfetch"), offer=OPEN)

    assert ("read", "webfetch") == tools.resolved
    assert ("webfetch is not built in: an extension must provide it",) == tools.warnings


def test_an_agent_of_which_nothing_is_known() -> None:
    """Without knowledge of the agent's tools nothing is dropped and nothing is warned about."""
    assert Tools(policy="allow", resolved=("anything",)) == resolve_tools(("anything",), offer=UNKNOWN)


@pytest.mark.parametrize(
    ("allow", "offer", "parent", "hint"),
    [
        (("subagent", "Agent"), UNKNOWN, None, "use a tool that the agent has"),
        (("bash", "write"), CLOSED, None, "the agent has read, grep, find, ls; write an empty list for no tools"),
        (("bash",), OPEN, ("read", "Agent"), "the parent has read; write an empty list for no tools"),
        (("bash",), OPEN, (), "the parent has no tools to pass on"),
        (("bash",), CLOSED, ("bash",), "the parent has bash"),
    ],
)
def test_nothing_left_of_a_list(
    allow: tuple[str, ...], offer: Offer, parent: tuple[str, ...] | None, hint: str
) -> None:
    """A list that ends up empty is an error; it becomes neither "no tools" nor "all tools"."""
    with pytest.raises(UsageError) as caught:
        resolve_tools(allow, offer=offer, parent=parent)

    assert f"no usable tools in the list {', '.join(allow)}" == caught.value.what
    assert hint in caught.value.hint


@pytest.mark.parametrize("parent", [None, (), ("read",)])
def test_no_tools_is_what_was_written(parent: tuple[str, ...] | None) -> None:
    """An empty list means no tools, even if the parent has some."""
    assert Tools(policy="allow", resolved=()) == resolve_tools((), offer=OPEN, parent=parent)


@pytest.mark.parametrize("parent", [None, ("read",)])
def test_without_a_field_there_is_no_flag(parent: tuple[str, ...] | None) -> None:
    """A parent limits the preset's list; a preset without a list gets the agent's own set."""
    assert Tools() == resolve_tools(None, offer=OPEN, parent=parent)


def test_a_list_is_bounded_by_the_parent() -> None:
    """Listed tools that are active in the parent are allowed; others are dropped with a warning and suggestions."""
    tools = resolve_tools(("read", "bash", "web_fetch"), offer=OPEN, parent=("read", "webfetch", "write", "subagent"))

    assert (
        Tools(
            policy="allow",
            resolved=("read",),
            warnings=(
                "bash is left out: the parent does not have it",
                "web_fetch is left out: the parent does not have it; did you mean webfetch?",
            ),
        )
        == tools
    )


def test_an_allowlist_is_bounded_by_all_that_the_parent_has() -> None:
    """An allowlist may contain the parent's inactive tools; a denial starts from the active ones."""
    parent, has = ("read", "bash"), ("read", "bash", "grep", "find", "ls")
    allowed = resolve_tools(("read", "grep", "find", "ls"), offer=OPEN, parent=parent, parent_has=has)
    denied = resolve_tools(None, ("bash",), offer=OPEN, parent=parent, parent_has=has)

    assert Tools(policy="allow", resolved=("read", "grep", "find", "ls")) == allowed
    assert ("read",) == denied.resolved


def test_what_was_left_out_in_one_line() -> None:
    """The short warning names only listed tools that the agent does not get, not other doubts."""
    offer = Offer(OFFERED, OFFERED)
    assert "subagent is left out: a subagent cannot delegate" == left_out(
        resolve_tools(("subagent", "read", "webfetch"), offer=offer)
    )
    assert "" == left_out(resolve_tools(None, ("webfetch",), offer=CLOSED))


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("Bash", OPEN.known, "bash"),
        ("raed", OPEN.known, "read"),
        ("web_fetch", ("webfetch",), "webfetch"),
        ("grep", ("read", "bash", "edit", "write"), ""),
        ("webfetch", OPEN.known, ""),
        ("codemode", OPEN.known, ""),
        ("usertool", (*(OPEN.known or ()), "usertool2"), "usertool2"),
        ("write", ("edit", "writer"), ""),
    ],
)
def test_a_misspelt_name(name: str, known: tuple[str, ...], meant: str) -> None:
    """Only one very similar name is suggested, and none for the name of an existing tool."""
    tools = resolve_tools((name, "only"), offer=UNKNOWN, parent=(*known, "only"))
    warning = "".join(tools.warnings)
    assert (f"did you mean {meant}?" in warning) if meant else "did you mean" not in warning


@pytest.mark.parametrize(
    ("allow", "starts"),
    [
        ((), False),
        (("read",), False),
        (("read", "codemode"), True),
        (("tool_search",), True),
        (("mcp__db__query",), True),
        (("read_mcp_resource",), True),
    ],
)
def test_servers_that_no_tool_reaches(allow: tuple[str, ...], starts: bool) -> None:
    """An agent without MCP tools is started without MCP servers, if it supports that."""
    leaves = Offer(OPEN.known, OPEN.default, leaves_servers=True)
    assert starts is resolve_tools(allow, offer=leaves).starts_servers
    assert resolve_tools(allow, offer=OPEN).starts_servers
    assert resolve_tools(None, offer=leaves).starts_servers


def test_an_agent_that_can_be_told_what_not_to_offer() -> None:
    """If the agent supports exclusion, a denial removes only the named tools and warns only of misspelt names."""
    offer = Offer(OPEN.known, OPEN.default, excludes=True, leaves_servers=True)
    denied = resolve_tools(None, ("edit", "webfetch", "Bash"), offer=offer)

    assert ("deny", None, ("edit", "webfetch", "Bash"), True) == (
        denied.policy, denied.resolved, denied.excluded, denied.starts_servers,
    )  # fmt: skip
    assert ("Bash is denied, but the agent does not have it anyway; did you mean bash?",) == denied.warnings
    assert ("read",) == resolve_tools(None, ("bash",), offer=offer, parent=("read", "bash")).resolved
    assert denied == with_finalize(denied)


def test_an_extension_tool_of_the_parent() -> None:
    """A tool active in the parent is available to its agent, without a warning about an extension."""
    assert Tools(policy="allow", resolved=("webfetch",)) == resolve_tools(
        ("webfetch",), offer=OPEN, parent=("read", "webfetch")
    )


@pytest.mark.parametrize(
    ("deny", "offer", "parent", "expected"),
    [
        (("bash",), OPEN, None, ("read", "edit", "write")),
        ((), OPEN, None, ("read", "bash", "edit", "write")),
        (("bash", "edit", "write"), OPEN, None, ("read",)),
        (("grep",), CLOSED, None, ("read", "find", "ls")),
        (("bash",), OPEN, ("read", "bash", "webfetch", "subagent", "Agent"), ("read", "webfetch")),
        ((), OPEN, ("read", "background_agent", "background_agent_status", FINALIZE_TOOL), ("read",)),
        (("read",), CLOSED, ("read", "ls", "webfetch", "ls"), ("ls",)),
        (("subagent",), OPEN, None, ("read", "bash", "edit", "write")),
    ],
)
def test_a_denial(
    deny: tuple[str, ...], offer: Offer, parent: tuple[str, ...] | None, expected: tuple[str, ...]
) -> None:
    """Denied tools leave the parent's active set or the agent's default one; delegation is always denied."""
    assert Tools(policy="deny", resolved=expected) == resolve_tools(None, deny, offer=offer, parent=parent)


def test_a_denial_of_what_is_not_offered() -> None:
    """A denied name that no tool has is a warning: a typo would leave the intended tool allowed."""
    tools = resolve_tools(None, ("Bash", "webfetch", "grep"), offer=OPEN)

    assert ("read", "bash", "edit", "write") == tools.resolved
    assert (
        "Bash is denied, but the agent does not have it anyway; did you mean bash?",
        "webfetch is denied, but the agent does not have it anyway",
    ) == tools.warnings


@pytest.mark.parametrize(
    ("deny", "offer", "parent", "what", "hint"),
    [
        (OPEN.default, OPEN, None, "no tools left without read, bash, edit, write", "the agent has read, grep"),
        (("read",), OPEN, ("read", "subagent"), "no tools left without read", "the parent has read;"),
        ((), OPEN, ("subagent",), "no tools left to pass on", "the parent has no tools to pass on"),
        (("x",), UNKNOWN, None, "no tools left without x", "use a tool that the agent has"),
    ],
)
def test_nothing_left_after_a_denial(
    deny: tuple[str, ...], offer: Offer, parent: tuple[str, ...] | None, what: str, hint: str
) -> None:
    """A denial of everything is an error; no tools are written as an empty list."""
    with pytest.raises(UsageError) as caught:
        resolve_tools(None, deny, offer=offer, parent=parent)

    assert (what, "denied_tools") == (caught.value.what, caught.value.where)
    assert caught.value.hint.startswith(hint)
    assert caught.value.hint.endswith("write tools: [] for no tools")


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (Tools(), None),
        (Tools(policy="allow", resolved=("read",)), ("read", FINALIZE_TOOL)),
        (Tools(policy="allow", resolved=()), (FINALIZE_TOOL,)),
        (Tools(policy="deny", resolved=("ls",)), ("ls", FINALIZE_TOOL)),
    ],
)
def test_finalization_is_added_after_the_policy(tools: Tools, expected: tuple[str, ...] | None) -> None:
    """The finalization tool is added to a tool list; without a list the agent has it anyway."""
    assert expected == with_finalize(tools).resolved
