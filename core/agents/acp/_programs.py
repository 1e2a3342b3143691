"""Known gaps in the reports of ACP programs, each found by measurement.

A program that is not listed here is assumed to report everything the protocol supports.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ...run.model import ToolPolicy, Tools

_VERSIONS = re.compile(r"@[\w.^~-]+$")
"""At the end of a package name, as in `npx @github/copilot@1.0.102`."""


class Program(Struct, frozen=True):
    title: str = ""
    lacks: str = ""
    """The gap in its end of turn, as the rest of a sentence after the title; its runs are `completed: unverified`.
    Empty for a program that distinguishes errors and cut answers from whole ones.
    """
    mixes_notes: bool = False
    """Whether its own errors and notes are mixed into the answer's text."""
    sums_session: bool = False
    """Whether a turn's usage is the session's total."""
    counts_last_step: bool = False
    """Whether a turn's usage covers only its last request."""
    tells_usage: bool = False
    """Whether it reports usage after each request, so that a limit can end the turn."""
    marks_whole: str = ""
    """The member of `_meta` that marks the end of a turn with a whole answer."""
    loses_sessions: bool = False
    """Whether it may lose a loaded session, so that a new one gets the conversation as text."""
    takes_servers: bool = True
    """Whether the model can use MCP servers that the client names."""


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
"""Programs, and their commands, that start the program named next."""

_BY_NAME = {"Copilot": COPILOT, "gemini-cli": GEMINI, "OpenCode": OPENCODE, "qwen-code": QWEN}
"""By its own name (`agentInfo`)."""
_BY_WORD = {
    **dict.fromkeys(("copilot", "@github/copilot"), COPILOT),
    **dict.fromkeys(("gemini", "@google/gemini-cli", "gemini-cli"), GEMINI),
    **dict.fromkeys(("opencode", "opencode-ai"), OPENCODE),
    **dict.fromkeys(("qwen", "@qwen-code/qwen-code", "qwen-code"), QWEN),
}
"""By words of the command: programs, and packages for npx."""


def program_named(name: str) -> Program:
    """Return the program with this name."""
    return _BY_NAME.get(name, OTHER)


def program_in(command: Sequence[str]) -> Program:
    """Return the program that a command starts, or `OTHER` if its words don't show it.

    Words after the program are its own arguments, which may be anything.
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
"""Like `-m subdeck.core.acp_bridge`, without looking up the module: saves 4 ms."""


def bridge_command(wishes: Mapping[str, str], command: Sequence[str]) -> tuple[str, ...]:
    """Return the bridge's command for an agent, with the options of `core/acp_bridge/_session_options.py`.

    `-P -E` keep the run's directory and environment out of it.
    """
    return (sys.executable, "-P", "-E", "-c", _PROGRAM, *map("=".join, wishes.items()), "--", *command)


# --- modes -----------------------------------------------------------------------------------------------------------

READ_ONLY_MODES = ("read-only", "plan")
"""By preference: codex-acp has the first, the other tested agents have the second."""
SHOWN = 12
"""Maximum modes that an error names."""


def read_only_mode(modes: Iterable[str]) -> str | None:
    """Return the mode for a read-only list of tools; None if there is none. Some agents identify a mode by an address
    that ends with `#plan`.
    """
    by_name = {mode.rpartition("#")[2]: mode for mode in modes}
    return next((by_name[name] for name in READ_ONLY_MODES if name in by_name), None)


_WRITING = frozenset({"edit", "write", "delete", "move", "switch_mode", "ExitPlanMode"})
"""Tools and kinds of calls that change files or end the agent's mode."""
_SHELL = frozenset({"bash", "execute"})


def denied_tools(tools: Tools) -> frozenset[str]:
    """Return the calls denied to a run with a read-only list of tools; empty for other runs."""
    if tools.policy not in (ToolPolicy.ALLOW, ToolPolicy.DENY):
        return frozenset()
    may_use_shell = tools.policy is ToolPolicy.DENY or "bash" in (tools.resolved or ())
    return _WRITING if may_use_shell else _WRITING | _SHELL
