"""The modes of agents of the Agent Client Protocol in which they change nothing without asking."""

from __future__ import annotations

from collections.abc import Iterable

from ...run.model import ToolPolicy, Tools

READ_ONLY_MODES = ("read-only", "plan")
"""By preference: codex-acp has the first one, the other agents that were tried have the second one."""
SHOWN = 12
"""Modes that an error names."""


def read_only_mode(modes: Iterable[str]) -> str | None:
    """Return the mode for a list of tools that only reads; None if there is none. Some agents write a mode as an
    address that ends with `#plan`.
    """
    by_name = {mode.rpartition("#")[2]: mode for mode in modes}
    return next((by_name[name] for name in READ_ONLY_MODES if name in by_name), None)


_WRITING = frozenset({"edit", "write", "delete", "move", "switch_mode", "ExitPlanMode"})
"""Tools and kinds of calls that change files, or by which agents leave their mode."""
_SHELL = frozenset({"bash", "execute"})


def denied_tools(tools: Tools) -> frozenset[str]:
    """Return the names of calls that are not allowed for a run whose tools only read; nothing for other runs."""
    if tools.policy not in (ToolPolicy.ALLOW, ToolPolicy.DENY):
        return frozenset()
    may_use_shell = tools.policy is ToolPolicy.DENY or "bash" in (tools.resolved or ())
    return _WRITING if may_use_shell else _WRITING | _SHELL
