"""Which tools a child may use: what its preset allows or denies, within what its agent and its parent have."""

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
"""Never handed on by a preset: a child does not delegate, and its finalization is added after the policy."""

SERVER_TOOLS = frozenset(
    {"codemode", "tool_search", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}
)
"""By which pi 1.x reaches MCP servers, beside the tools that are named after a server."""

SERVER_PREFIX = "mcp__"
"""As in `mcp__<server>__<tool>`."""

TOOL_NAMES = frozenset({"read", "bash", "edit", "write", "grep", "find", "ls", *SERVER_TOOLS})
"""Of tools that agents bring along: whoever writes one of these means it."""

SIMILAR = 0.75
"""How alike two names have to be for one to be taken for a misspelling of the other: `raed` and `read` are."""

_LEFT_OUT = "is left out"

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.:-]*"
"""No leading `-` or `+`: newer pi reads `-bash` in a list as "all but bash"."""


class Offer(Struct, frozen=True):
    """What an agent has to offer, as far as that is known without starting it."""

    known: tuple[str, ...] | None = None
    """All the names; None where nothing is known."""
    default: tuple[str, ...] = ()
    """What is on when no tools are named."""
    closed: bool = False
    """True where there are no others; else an extension may bring more."""
    excludes: bool = False
    """Whether the agent can be told "all but these"."""
    leaves_servers: bool = False
    """Whether the agent can be told to start no MCP servers."""
    agent: str = "the agent"
    """What it is called in errors."""


def parse_tools(text: str) -> tuple[str, ...]:
    """Read `read, grep,find`; blank text is an empty list, which means no tools. Raises UsageError."""
    return checked_tools(name for name in text.split(",") if name.strip())


def checked_tools(names: Iterable[str]) -> tuple[str, ...]:
    """Strip the names, drop repeated ones; raise UsageError for what cannot be the name of a tool."""
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
    """Decide what the child is told to offer.

    `allow` and `deny` are the preset's lists, None for none; at most one is there. `parent` are a parent's active
    tools, if it names them, and `parent_has` all that it has, switched on or not (None: no more than the active ones).
    An allowlist is bounded by what the parent has; a denial starts from what is active there. Without a parent it
    starts from all that the agent would offer, or, where an agent cannot be told "all but these", from its default set.
    Raises UsageError when nothing is left of a list that is not empty.
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
    """Take away what is denied whatever it is called with; an agent that cannot be told so is not told.

    Raises UsageError where nothing is left.
    """
    if tools.resolved is not None:
        left = tuple(name for name in tools.resolved if name not in denied)
        if tools.resolved and not left:
            raise UsageError(
                f"permissions deny every tool in the list {', '.join(tools.resolved)}",
                where="permissions",
                hint="remove the rules, or write tools: [] for no tools",
            )
        return replace(tools, resolved=left)
    if not denied or not offer.excludes:
        return tools
    return replace(tools, policy=ToolPolicy.DENY, excluded=tuple(dict.fromkeys((*tools.excluded, *denied))))


def left_out(tools: Tools) -> str:
    """Return in one line which tools the child does not get although its preset lists them; empty where it gets all."""
    return "; ".join(warning for warning in tools.warnings if _LEFT_OUT in warning)


def with_finalize(tools: Tools) -> Tools:
    """Add the tool by which a child hands in its result; where no tools are named the agent has it anyway."""
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
            # A parent that has the tool got it from where the child gets it.
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
    """Leave the choice to the agent, but for these. A name that is not known may be that of an extension's tool."""
    doubtful = [name for name in deny if _similar(name, offer.known or ())]
    return Tools(policy=ToolPolicy.DENY, excluded=tuple(deny), warnings=tuple(_denied_in_vain(doubtful, (), offer)))


def _reaches_servers(name: str) -> bool:
    return name in SERVER_TOOLS or name.startswith(SERVER_PREFIX)


def _denied_in_vain(deny: Sequence[str], base: Sequence[str], offer: Offer) -> Iterator[str]:
    """Name what was meant to be denied under a name that nobody has: it may be a mistyped one that stays allowed."""
    known = {*base, *(offer.known or ()), *DELEGATION_TOOLS}
    for name in deny:
        if name not in known:
            yield _near(f"{name} is denied, but the agent does not have it anyway", name, known)


def _near(text: str, name: str, known: Iterable[str]) -> str:
    near = _similar(name, known)
    return f"{text}; {near}" if near else text


def _similar(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …?" where a known name is written nearly as this one; a tool's own name was meant."""
    names = sorted(known)
    if name in names or name in TOOL_NAMES:
        return ""
    return nearest(name, names, cutoff=SIMILAR, count=1) or nearest(name.lower(), names, cutoff=SIMILAR, count=1)


def _offered(offer: Offer, parent: Sequence[str] | None) -> str:
    if parent is not None:
        own = [name for name in parent if name not in DELEGATION_TOOLS]
        return f"the parent has {', '.join(own)}" if own else "the parent has no tools to pass on"
    return f"{offer.agent} has {', '.join(offer.known)}" if offer.known else f"use a tool that {offer.agent} has"
