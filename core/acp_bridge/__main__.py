"""Put the task on stdin to an agent; every message of the agent goes to stdout, as it came, a line each.

With `--talk` stdin has lines of JSON instead: `{"prompt": [TEXT, …]}`, `{"cancel": true}`, and
`{"reply": {"id": ID, "answer": ANSWER}}` to what the agent asks: an option, the content of a form, or null.
`{"bridge":"ready"}` on stdout says that the first line is waited for; the end of stdin ends the session.
"""

from __future__ import annotations

import argparse
import json
import sys
from subprocess import PIPE, Popen

from .opening import Opening


def main() -> int:
    flags = _parse_flags()
    prompt = None if flags.no_task or flags.talk else sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        agent = Popen(flags.command, stdin=PIPE, stdout=PIPE, bufsize=0)
    except OSError as error:
        print(f"Error: {flags.command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 1
    try:
        opening = Opening(agent, [json.loads(server) for server in flags.server], flags.resume, fills_forms=flags.talk)
        return _put(flags, prompt, agent, opening)
    except BaseException:
        agent.kill()
        raise


def _put(flags: argparse.Namespace, prompt: str | None, agent: Popen[bytes], opening: Opening) -> int:
    """Put the task to the agent, once the SDK is loaded and the session is open; each takes about as long."""
    import asyncio

    from .sdk import prepare

    prepare()
    from .options import OptionError
    from .task import Task

    task = Task(
        prompt=prompt,
        before=flags.before,
        model=flags.model,
        thinking=flags.thinking,
        mode=flags.mode,
        allowed=frozenset(filter(None, flags.allow.split(","))),
        allowed_tools=frozenset(flags.allow_tool),
        talks=flags.talk,
    )
    try:
        return asyncio.run(task.run(agent, opening))
    except OptionError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _parse_flags() -> argparse.Namespace:
    """Return the flags; exits with code 2 when they cannot be used."""
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
    add("--talk", action="store_true", help="take what is said to the agent in lines on stdin, as it comes")
    add("--server", default=[], action="append", metavar="JSON", help="an MCP server, as in session/new")
    add("command", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
