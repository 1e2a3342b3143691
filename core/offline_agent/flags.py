"""pi's command line, as far as it means something without a model."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from .tools import FINALIZE_TOOL, TOOL_NAMES

FINALIZE_EXTENSION = "finalize.ts"
"""The one extension of pi that has a meaning here; every other is accepted without effect."""

_WITHOUT_EFFECT = {
    "store": "--model --models --thinking --provider --api-key --system-prompt --append-system-prompt --skill --theme "
    "--prompt-template --name -n",
    "store_true": "--print -p --no-extensions -ne --no-skills -ns --no-prompt-templates -np --no-context-files -nc "
    "--no-themes --no-mcp --approve -a --no-approve -na --offline --verbose",
}
"""Flags of pi by how they are parsed: with a value, or without one."""


class BadArguments(Exception):
    """The command line cannot be used; the text is what is printed after `Error: `."""


class Flags(NamedTuple):
    tools: tuple[str, ...]
    """What may be used, in the order of `TOOL_NAMES`."""
    session: str | None
    """The path of the session file; None when none is kept."""
    hands_over: bool
    """True when the answer goes to the tool `subagent_finalize`, because the extension that offers it is named."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadArguments(message)


def parse_flags(argv: Sequence[str]) -> Flags:
    """Parse pi's flags; raises BadArguments, and prints the help and exits when that is asked for."""
    parser = _Parser(
        prog="python -P -E -m subdeck.core.offline_agent",
        usage="%(prog)s --mode json [options] <prompt.md",
        description="Reads the working directory for the task on stdin, without a model, a key or the network. "
        "Flags of pi that mean nothing without a model are accepted and have no effect.",
        epilog="SUBDECK_OFFLINE_PACE: seconds between two pieces of text (default 0.01; 0 for none)",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--mode", choices=["json"], required=True, help="the only output mode is json")
    add("--session", metavar="PATH", help="write the session to this file, or continue it")
    add("--no-session", action="store_true", help="keep no session, as without --session")
    add("--tools", "-t", help=f"comma-separated allowlist of {', '.join(TOOL_NAMES)}; other names are ignored")
    add("--exclude-tools", "-xt", metavar="TOOLS", default="", help="comma-separated tools to leave out")
    add("--no-tools", "-nt", action="store_true", help="no tools: nothing is read")
    add("--extension", "-e", metavar="PATH", default="", help=f"{FINALIZE_EXTENSION} makes it hand its answer over")
    for action, flags in _WITHOUT_EFFECT.items():
        for flag in flags.split():
            add(flag, action=action, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    listed = {*TOOL_NAMES, FINALIZE_TOOL} if given.tools is None else _names(given.tools)
    left_out = TOOL_NAMES if given.no_tools else _names(given.exclude_tools)
    return Flags(
        tools=tuple(name for name in TOOL_NAMES if name in listed and name not in left_out),
        session=None if given.no_session else given.session,
        hands_over=os.path.basename(given.extension) == FINALIZE_EXTENSION and FINALIZE_TOOL in listed,
    )


def _names(csv: str) -> set[str]:
    return {name.strip() for name in csv.split(",")}
