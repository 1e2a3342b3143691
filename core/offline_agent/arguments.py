"""pi's command line, as far as it means something without a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from ..run.finalization import FINALIZE_TOOL
from . import TOOL_NAMES

THINKING_LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")

_SWITCHES = {
    "-p": "print",
    "--print": "print",
    "-ne": "no-extensions",
    "--no-extensions": "no-extensions",
    "-ns": "no-skills",
    "--no-skills": "no-skills",
    "-np": "no-prompt-templates",
    "--no-prompt-templates": "no-prompt-templates",
    "--no-themes": "no-themes",
    "-nc": "no-context-files",
    "--no-context-files": "no-context-files",
    "-nbt": "no-builtin-tools",
    "--no-builtin-tools": "no-builtin-tools",
    "-nt": "no-tools",
    "--no-tools": "no-tools",
    "--no-mcp": "no-mcp",
    "-a": "approve",
    "--approve": "approve",
    "-na": "no-approve",
    "--no-approve": "no-approve",
    "--no-session": "no-session",
    "--offline": "offline",
    "--verbose": "verbose",
    "-h": "help",
    "--help": "help",
    "-v": "version",
    "--version": "version",
}
_WITH_VALUE = {
    "--mode": "mode",
    "--provider": "provider",
    "--model": "model",
    "--models": "models",
    "--api-key": "api-key",
    "--thinking": "thinking",
    "--system-prompt": "system-prompt",
    "--append-system-prompt": "append-system-prompt",
    "--session": "session",
    "--session-dir": "session-dir",
    "--session-id": "session-id",
    "-n": "name",
    "--name": "name",
    "-t": "tools",
    "--tools": "tools",
    "-xt": "exclude-tools",
    "--exclude-tools": "exclude-tools",
    "-e": "extension",
    "--extension": "extension",
    "--skill": "skill",
    "--prompt-template": "prompt-template",
    "--theme": "theme",
}
_INTERACTIVE = ("-c", "--continue", "-r", "--resume", "--fork", "--export", "--list-models")
"""Flags of pi that have no meaning in a run of one task."""

HELP = """offline reader: reads the working directory for a task, without a model, a key or the network

Usage:
  python -P -E -m subdeck.core.offline_agent --mode json [options] [@files...] [messages...] <prompt.md

It speaks pi's JSON mode. Without --session or --session-dir no session is kept.

Options:
  --mode json                    The only output mode
  --model <pattern>              Accepted; the answer always comes from offline/reader
  --thinking <level>             Accepted
  --session <path|id>            Write the session to this file, or continue it
  --session-dir <dir>            Where sessions are kept and looked up by id
  --session-id <id>              Create or continue the session of this id
  --no-session                   Keep no session
  --tools, -t <tools>            Comma-separated allowlist of read, grep, find, ls; other names are ignored
  --exclude-tools, -xt <tools>   Comma-separated tools to leave out
  --no-tools, -nt                No tools: nothing is read
  --system-prompt <text>, --append-system-prompt <text>, --extension, -e <path>, --no-extensions, -ne,
  --skill, --no-skills, -ns, --prompt-template, --no-prompt-templates, -np, --theme, --no-themes,
  --no-context-files, -nc, --print, -p, --offline, --verbose
                                 Accepted, without effect
  --help, -h                     Show this help
  --version, -v                  Show version number

Environment:
  SUBDECK_OFFLINE_PACE           Seconds between two pieces of text (default 0.01; 0 for none)
"""


FINALIZE_EXTENSION = "finalize.ts"
"""The one extension of pi that has a meaning here; every other is accepted without effect."""


class BadArguments(Exception):
    """The command line cannot be used; the text is what pi would print after `Error: `."""


class Options(NamedTuple):
    mode: str
    model: str
    thinking: str
    tools: tuple[str, ...]
    """What may be used, in the order of `TOOL_NAMES`."""
    session: str | None
    session_dir: str | None
    session_id: str | None
    keep_session: bool
    files: tuple[str, ...]
    """The `@file` arguments."""
    messages: tuple[str, ...]
    hands_over: bool
    """The answer goes to the tool `subagent_finalize`, as it would with the extension that is named."""
    show: str
    """`help`, `version` or empty."""


def parse_arguments(argv: Sequence[str]) -> Options:
    """Parse pi's flags; raises BadArguments, worded as pi does."""
    switches: set[str] = set()
    values: dict[str, str] = {}
    files: list[str] = []
    messages: list[str] = []
    rest = iter(argv)
    for argument in rest:
        if argument == "--":
            messages += rest
        elif argument in _SWITCHES:
            switches.add(_SWITCHES[argument])
        elif argument in _WITH_VALUE:
            value = next(rest, None)
            if value is None:
                raise BadArguments(f"Unknown option: {argument}")
            values[_WITH_VALUE[argument]] = value
        elif argument in _INTERACTIVE:
            raise BadArguments(f"{argument} is not supported by the offline reader")
        elif argument.startswith("@"):
            files.append(argument[1:])
        elif argument.startswith("-"):
            raise BadArguments(f"Unknown option: {argument}")
        else:
            messages.append(argument)
    show = next((name for name in ("help", "version") if name in switches), "")
    mode = values.get("mode", "text")
    if mode != "json" and not show:
        raise BadArguments(f"output mode {mode} is not supported by the offline reader: use --mode json")
    return Options(
        mode=mode,
        model=values.get("model", ""),
        thinking=values.get("thinking", "off"),
        tools=_allowed_tools(switches, values),
        session=values.get("session"),
        session_dir=values.get("session-dir"),
        session_id=values.get("session-id"),
        keep_session="no-session" not in switches,
        files=tuple(files),
        messages=tuple(messages),
        hands_over=_hands_over(values),
        show=show,
    )


def _allowed_tools(switches: set[str], values: dict[str, str]) -> tuple[str, ...]:
    if "no-tools" in switches or ("no-builtin-tools" in switches and "tools" not in values):
        return ()
    listed = _names(values["tools"]) if "tools" in values else set(TOOL_NAMES)
    excluded = _names(values.get("exclude-tools", ""))
    return tuple(name for name in TOOL_NAMES if name in listed and name not in excluded)


def _hands_over(values: dict[str, str]) -> bool:
    offered = os.path.basename(values.get("extension", "")) == FINALIZE_EXTENSION
    return offered and ("tools" not in values or FINALIZE_TOOL in _names(values["tools"]))


def _names(csv: str) -> set[str]:
    return {name.strip() for name in csv.split(",")}
