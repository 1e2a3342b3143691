"""Which tools a child may use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .errors import UsageError, nearest
from .plain import one_line
from .runs import Tools

DELEGATION_TOOLS = frozenset({"subagent", "background_agent", "background_agent_status", "Agent", "subagent_finalize"})
"""Never handed on by a preset: a child does not delegate, and its finalization is added after the policy."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
"""No leading `-` or `+`: newer pi reads `-bash` in a list as "all but bash"."""


def parse_tools(text: str) -> tuple[str, ...]:
    """Read `read, grep,find`; blank text is an empty list, which means no tools. Raises UsageError."""
    return checked_tools(name for name in text.split(",") if name.strip())


def checked_tools(names: Iterable[str]) -> tuple[str, ...]:
    """Strip the names, drop repeated ones; raise UsageError for what cannot be the name of a tool."""
    stripped = tuple(dict.fromkeys(name.strip() for name in names))
    for name in stripped:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f'"{one_line(name, 40)}" is not the name of a tool',
                where="tools",
                hint="write names like read, grep, find, ls, with commas between them",
            )
    return stripped


def resolve_tools(allow: Sequence[str] | None, offered: Sequence[str] | None, *, closed: bool = False) -> Tools:
    """Decide what the child is told to offer.

    `allow` is the preset's list, None when it has none. `offered` are the tools known of the agent, None when nothing
    is known. `closed` says that there are no others: then the rest is left out; else it may come from an extension,
    and is kept with a warning. Raises UsageError when nothing is left of a list that was not written empty.
    """
    if allow is None:
        return Tools()
    delegation = [name for name in allow if name in DELEGATION_TOOLS]
    warnings = [f"{name} is left out: a child does not delegate" for name in delegation]
    allowed = [name for name in allow if name not in DELEGATION_TOOLS]
    unknown = [name for name in allowed if offered is not None and name not in offered]
    warnings += [_not_offered(name, offered or (), closed=closed) for name in unknown]
    resolved = tuple(name for name in allowed if not (closed and name in unknown))
    if allow and not resolved:
        raise UsageError(
            f"no tool is left of the list {', '.join(allow)}",
            where="tools",
            hint=_offer(offered) + "; write an empty list for no tools",
        )
    return Tools(policy="allow", resolved=resolved, warnings=tuple(warnings))


def _not_offered(name: str, offered: Sequence[str], *, closed: bool) -> str:
    state = "is left out: the agent does not offer it" if closed else "is not built in: an extension has to bring it"
    near = nearest(name, offered) or nearest(name.lower(), offered)
    return f"{name} {state}; {near}" if near else f"{name} {state}"


def _offer(offered: Sequence[str] | None) -> str:
    return f"the agent offers {', '.join(offered)}" if offered else "name a tool that the agent offers"
