"""Decide which tools an agent may use: its preset's lists, within the tools of the agent and its parent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..errors import UsageError, nearest
from ..text.plain import one_line
from .model import ToolPolicy, Tools
from .outcome import FINALIZE_TOOL

DELEGATION_TOOLS = frozenset(
    {"subagent", "background_agent", "background_agent_status", "background_agent_send", "Agent", FINALIZE_TOOL}
)
"""Never passed on by a preset: a subagent does not delegate, and its finalize tool is added after the policy."""

SERVER_TOOLS = frozenset(
    {"codemode", "tool_search", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}
)
"""Tools by which pi 1.x reaches MCP servers, besides those named after a server."""

SERVER_PREFIX = "mcp__"
"""Such as `mcp__<server>__<tool>`."""

TOOL_NAMES = frozenset({"read", "bash", "edit", "write", "grep", "find", "ls", *SERVER_TOOLS})
"""Names of tools that agents include: never treated as a misspelling."""

SIMILAR = 0.75
"""Similarity from which a name is treated as a misspelling of another: `raed` and `read` reach it."""

_LEFT_OUT = "is left out"

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.:-]*"
"""No leading `-` or `+`: newer pi reads `-bash` in a list as "all but bash"."""


class Offer(Struct, frozen=True):
    """The tools of an agent, as known without starting it."""

    known: tuple[str, ...] | None = None
    """All names; None if unknown."""
    default: tuple[str, ...] = ()
    """Tools that are on if no tools are named."""
    closed: bool = False
    """True if there are no others; otherwise an extension may add more."""
    excludes: bool = False
    """Whether the agent supports "all but these"."""
    leaves_servers: bool = False
    """Whether the agent can be started without MCP servers."""
    agent: str = "the agent"
    """Its name in errors."""


def parse_tools(text: str) -> tuple[str, ...]:
    """Read `read, grep,find`; blank text is an empty list, which means no tools. Raises UsageError."""
    return checked_tools(name for name in text.split(",") if name.strip())


def checked_tools(names: Iterable[str]) -> tuple[str, ...]:
    """Strip the names, drop repeated ones; raise UsageError for an invalid tool name."""
    stripped = tuple(dict.fromkeys(name.strip() for name in names))
    for name in stripped:
        if not re.fullmatch(_NAME, name):
            raise UsageError(
                f'"{one_line(name, 40)}" is not the name of a tool',
                where="tools",
                hint="use names such as read, grep, find, ls, separated by commas",
            )
    return stripped


def resolve_tools(
    allow: Sequence[str] | None,
    deny: Sequence[str] | None = None,
    *,
    offer: Offer,
    parent: Sequence[str] | None = None,
    parent_has: Sequence[str] | None = None,
) -> Tools:
    """Decide which tools the agent offers.

    `allow` and `deny` are the preset's lists, None for none; at most one is given. `parent` are a parent's active
    tools, if it names them, and `parent_has` all its tools, active or not (None: only the active ones). An allowlist is
    bounded by all of the parent's tools; a denylist starts from its active ones. Without a parent it starts from all of
    the agent's tools, or from its default set if the agent does not support "all but these". Raises UsageError if no
    tool is left, except for an empty `allow`.
    """
    if allow is not None:
        bound = parent if parent is None or parent_has is None else tuple(dict.fromkeys((*parent_has, *parent)))
        tools = _allowed(allow, offer, bound)
    elif deny is None:
        return Tools()
    elif parent is None and offer.excludes:
        return _excluded(deny, offer)
    else:
        tools = _denied(deny, offer, parent)
    reaches_servers = any(map(_reaches_servers, tools.resolved or ()))
    return replace(tools, starts_servers=reaches_servers or not offer.leaves_servers)


def without(tools: Tools, denied: Sequence[str], offer: Offer) -> Tools:
    """Remove tools that are denied with any arguments; without a list only if the agent supports "all but these".

    Raises UsageError if no tool is left.
    """
    if tools.resolved is not None:
        remaining = tuple(name for name in tools.resolved if name not in denied)
        if tools.resolved and not remaining:
            raise UsageError(
                f"permissions deny every tool in the list {', '.join(tools.resolved)}",
                where="permissions",
                hint="remove the rules, or write tools: [] for no tools",
            )
        return replace(tools, resolved=remaining)
    if not denied or not offer.excludes:
        return tools
    return replace(tools, policy=ToolPolicy.DENY, excluded=tuple(dict.fromkeys((*tools.excluded, *denied))))


def left_out(tools: Tools) -> str:
    """Return in one line the tools of the preset that the agent does not get; empty if it gets all."""
    return "; ".join(warning for warning in tools.warnings if _LEFT_OUT in warning)


def with_finalize(tools: Tools) -> Tools:
    """Add the tool that returns a structured result; if no tools are named, the agent has it anyway."""
    if tools.resolved is None:
        return tools
    return replace(tools, resolved=(*tools.resolved, FINALIZE_TOOL))


def _allowed(allow: Sequence[str], offer: Offer, parent: Sequence[str] | None) -> Tools:
    resolved: list[str] = []
    warnings: list[str] = []
    for name in allow:
        if name in DELEGATION_TOOLS:
            warnings.append(f"{name} {_LEFT_OUT}: a subagent cannot delegate")
        elif parent is not None and name not in parent:
            warnings.append(_near(f"{name} {_LEFT_OUT}: the parent does not have it", name, parent))
        elif offer.known is not None and name not in offer.known and offer.closed:
            warnings.append(_near(f"{name} {_LEFT_OUT}: the agent does not have it", name, offer.known))
        else:
            resolved.append(name)
            # If the parent has the tool, the agent gets it from the same source.
            if offer.known is not None and name not in offer.known and parent is None:
                warnings.append(_near(f"{name} is not built in: an extension must provide it", name, offer.known))
    if allow and not resolved:
        raise UsageError(
            f"no usable tools in the list {', '.join(allow)}",
            where="tools",
            hint=f"{_offered(offer, parent)}; write an empty list for no tools",
        )
    return Tools(policy=ToolPolicy.ALLOW, resolved=tuple(resolved), warnings=tuple(warnings))


def _denied(deny: Sequence[str], offer: Offer, parent: Sequence[str] | None) -> Tools:
    base = offer.default if parent is None else parent
    resolved = tuple(
        name
        for name in dict.fromkeys(base)
        if name not in deny
        and name not in DELEGATION_TOOLS
        and not (offer.closed and offer.known is not None and name not in offer.known)
    )
    if not resolved:
        raise UsageError(
            f"no tools left without {', '.join(deny)}" if deny else "no tools left to pass on",
            where="denied_tools",
            hint=f"{_offered(offer, parent)}; write tools: [] for no tools",
        )
    return Tools(policy=ToolPolicy.DENY, resolved=resolved, warnings=tuple(_denied_in_vain(deny, base, offer)))


def _excluded(deny: Sequence[str], offer: Offer) -> Tools:
    """Leave the choice to the agent, except for these. An unknown name may be that of an extension's tool."""
    doubtful = [name for name in deny if _similar(name, offer.known or ())]
    return Tools(policy=ToolPolicy.DENY, excluded=tuple(deny), warnings=tuple(_denied_in_vain(doubtful, (), offer)))


def _reaches_servers(name: str) -> bool:
    return name in SERVER_TOOLS or name.startswith(SERVER_PREFIX)


def _denied_in_vain(deny: Sequence[str], base: Sequence[str], offer: Offer) -> Iterator[str]:
    """Warn about denied names that match no tool: a misspelled tool would stay allowed."""
    known_names = {*base, *(offer.known or ()), *DELEGATION_TOOLS}
    for name in deny:
        if name not in known_names:
            yield _near(f"{name} is denied, but the agent does not have it anyway", name, known_names)


def _near(text: str, name: str, known_names: Iterable[str]) -> str:
    near = _similar(name, known_names)
    return f"{text}; {near}" if near else text


def _similar(name: str, known_names: Iterable[str]) -> str:
    """Return "did you mean …?" if a known name is similar; empty for an exact name of a tool."""
    names = sorted(known_names)
    if name in names or name in TOOL_NAMES:
        return ""
    return nearest(name, names, cutoff=SIMILAR, count=1) or nearest(name.lower(), names, cutoff=SIMILAR, count=1)


def _offered(offer: Offer, parent: Sequence[str] | None) -> str:
    if parent is not None:
        names = [name for name in parent if name not in DELEGATION_TOOLS]
        return f"the parent has {', '.join(names)}" if names else "the parent has no tools to pass on"
    return f"{offer.agent} has {', '.join(offer.known)}" if offer.known else f"use a tool that {offer.agent} has"
