"""What the programs that speak the protocol leave out of it, as it was measured with each.

A program that is not named here is taken to report what the protocol has a place for.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ...run.model import ToolPolicy, Tools

_VERSIONS = re.compile(r"@[\w.^~-]+$")
"""At the end of the name of a package, as in `npx @github/copilot@1.0.102`."""


class Program(Struct, frozen=True):
    title: str = ""
    lacks: str = ""
    """What the end of a turn does not tell, as the rest of a sentence that begins with the title: its runs are
    `completed: unverified`. Empty for a program that tells errors and cut answers apart from whole ones."""
    mixes_notes: bool = False
    """Whether its own errors and notes come as text of the answer."""
    sums_session: bool = False
    """Whether the usage of a turn is that of the session so far."""
    counts_last_step: bool = False
    """Whether the usage of a turn is that of its last request only."""
    tells_usage: bool = False
    """Whether each request of a turn is followed by its usage, so that a limit can end the turn."""
    marks_whole: str = ""
    """The member of `_meta` that only the end of a turn has whose answer is whole."""
    loses_sessions: bool = False
    """Whether one that it loads may be lost, so that a new one is told what was said."""
    takes_servers: bool = True
    """Whether MCP servers that a client names are offered to the model."""


OTHER = Program()
COPILOT = Program(
    title="Copilot",
    lacks="reports model errors as text, and does not report an answer cut off by the length limit",
    mixes_notes=True,
    sums_session=True,
    takes_servers=False,
)
GEMINI = Program(
    title="Gemini CLI",
    lacks="does not report a broken connection to its model, or an answer cut off by the length limit",
    loses_sessions=True,
)
OPENCODE = Program(
    title="OpenCode", lacks="does not report an answer cut off by the length limit", counts_last_step=True
)
QWEN = Program(title="Qwen Code", tells_usage=True, marks_whole="qwen.branchPoint")

_LAUNCHERS = frozenset({"npx", "bunx", "bun", "node", "pnpm", "yarn", "dlx", "exec", "x", "env", "nice"})
"""Programs, and commands of them, that start the one that is named next."""

_BY_NAME = {"Copilot": COPILOT, "gemini-cli": GEMINI, "OpenCode": OPENCODE, "qwen-code": QWEN}
"""By the name that each gives of itself (`agentInfo`)."""
_BY_WORD = {
    **dict.fromkeys(("copilot", "@github/copilot"), COPILOT),
    **dict.fromkeys(("gemini", "@google/gemini-cli", "gemini-cli"), GEMINI),
    **dict.fromkeys(("opencode", "opencode-ai"), OPENCODE),
    **dict.fromkeys(("qwen", "@qwen-code/qwen-code", "qwen-code"), QWEN),
}
"""By the words of a command: programs, and packages for npx."""


def program_named(name: str) -> Program:
    """Return the program that gives itself this name."""
    return _BY_NAME.get(name, OTHER)


def program_in(command: Sequence[str]) -> Program:
    """Return the program that a command starts, as far as its words tell; another one where they do not.

    What follows the program are its own arguments, which may name anything.
    """
    for word in command:
        if word.startswith("-") or word.rpartition("/")[2] in _LAUNCHERS:
            continue
        plain = _VERSIONS.sub("", word) if not word.startswith("/") and word.count("@") else word
        for name in (plain, plain.rpartition("/")[2], plain.rpartition("/")[2].partition(".")[0]):
            if program := _BY_WORD.get(name):
                return program
        return OTHER
    return OTHER


# --- the program of a run --------------------------------------------------------------------------------------------

_PROGRAM = "from subdeck.core.acp_bridge.__main__ import main; raise SystemExit(main())"
"""What `-m subdeck.core.acp_bridge` does, without what finds a module by its name: 4 ms."""


def bridge_command(wishes: Mapping[str, str], command: Sequence[str]) -> tuple[str, ...]:
    """Return the bridge with the command of an agent; `wishes` are those of `core/acp_bridge/_wishes.py`.

    `-P -E` keep the run's directory and environment out of it.
    """
    return (sys.executable, "-P", "-E", "-c", _PROGRAM, *map("=".join, wishes.items()), "--", *command)


# --- modes -----------------------------------------------------------------------------------------------------------

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
