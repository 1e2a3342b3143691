"""Put the task on stdin to an agent; every message of the agent goes to stdout, as it came, a line each."""

from __future__ import annotations

import argparse
import asyncio
import sys

from acp.schema import McpServerStdio

from .options import OptionError
from .task import Task


def main() -> int:
    task = _parse_flags()
    try:
        return asyncio.run(task.run())
    except OptionError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _parse_flags() -> Task:
    """Return the task; exits with code 2 when the flags cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -P -E -m subdeck.core.acp_bridge",
        usage="%(prog)s [options] -- PROGRAM [ARG…] <task.md",
        description="Puts one task to an agent that speaks the Agent Client Protocol.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", default="", metavar="ID", help="choose this model by the agent's own option")
    add("--thinking", default="", metavar="LEVEL", help="choose this level by the agent's own option")
    add("--mode", default="", metavar="ID", help="choose this mode by the agent's own option")
    add("--resume", default="", metavar="ID", help="continue this session of the agent")
    add("--before", default="", metavar="FILE", help="text that is put before the task")
    add("--allow", default="", metavar="KINDS", help="comma-separated kinds of tool calls that are allowed when asked")
    add("--allow-tool", default=[], action="append", metavar="NAME", help="a tool of a server, allowed when asked")
    add("--no-task", action="store_true", help="only begin a session, in which the agent says what can be chosen")
    server = McpServerStdio.model_validate_json
    add("--server", default=[], action="append", metavar="JSON", type=server, help="an MCP server, as in session/new")
    add("command", nargs="+", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    return Task(
        command=flags.command,
        prompt=None if flags.no_task else sys.stdin.buffer.read().decode("utf-8", "replace"),
        before=flags.before,
        model=flags.model,
        thinking=flags.thinking,
        mode=flags.mode,
        resume=flags.resume,
        allowed=frozenset(filter(None, flags.allow.split(","))),
        allowed_tools=frozenset(flags.allow_tool),
        servers=tuple(flags.server),
    )


if __name__ == "__main__":
    sys.exit(main())
