"""Run the offline agent as pi is run: flags, a prompt on stdin, events on stdout, pi's exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from .answer import Answer
from .directory import TOOL_NAMES, Directory
from .stream import FINALIZE_TOOL, Conversation, Session
from .task import Task

FINALIZE_EXTENSION = "finalize.ts"
"""The one extension of pi that has a meaning here; every other is accepted without effect."""

USUAL_PACE_S = 0.01
"""Seconds between two pieces of text."""
LONGEST_PACE_S = 60


def main() -> None:
    """Do what the prompt asks; raise SystemExit where it cannot be done."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os._exit(128 + number))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.umask(0o077)  # it writes its session only
    flags = _parse_flags()
    cwd = os.getcwd()
    prompt = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    session = Session(None if flags.no_session else flags.session, cwd)
    conversation = Conversation(session, _pace())
    if not prompt:
        return
    conversation.begin(prompt)
    listed = [*TOOL_NAMES, FINALIZE_TOOL] if flags.tools is None else flags.tools.split(",")
    tools = [] if flags.no_tools else [name for name in TOOL_NAMES if name in listed]
    directory = Directory(cwd)
    answer = Answer(Task(prompt, directory.kind), directory, tools, conversation)
    hands_over = os.path.basename(flags.extension) == FINALIZE_EXTENSION and FINALIZE_TOOL in listed
    conversation.answer(answer.write(session.earlier_tasks), hands_over)


def _pace() -> float:
    try:
        pace = float(os.environ.get("SUBDECK_OFFLINE_PACE", ""))
    except ValueError:
        return USUAL_PACE_S
    return pace if 0 <= pace <= LONGEST_PACE_S else USUAL_PACE_S


def _parse_flags() -> argparse.Namespace:
    """Parse those of pi's flags that the engine passes; exits with code 2 when they cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -P -E -m subdeck.core.offline_agent",
        usage="%(prog)s --mode json [options] <prompt.md",
        description="Reads the working directory for the task on stdin, without a model, a key or the network. "
        "Flags of pi that mean nothing without a model are accepted and have no effect.",
        epilog="SUBDECK_OFFLINE_PACE: seconds between two pieces of text (default 0.01; 0 for none, at most 60)",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--mode", choices=["json"], required=True, help="the only output mode is json")
    add("--session", metavar="PATH", help="write the session to this file, or continue it")
    add("--no-session", action="store_true", help="keep no session, as without --session")
    add("--tools", help=f"comma-separated allowlist of {', '.join(TOOL_NAMES)}; other names are ignored")
    add("--no-tools", action="store_true", help="no tools: nothing is read")
    add("-e", dest="extension", metavar="PATH", default="", help=f"{FINALIZE_EXTENSION} makes it hand its answer over")
    for flag in ("--model", "--thinking", "--system-prompt", "--append-system-prompt"):
        add(flag, help=argparse.SUPPRESS)
    add("-nc", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as missing:
        sys.exit(f"Error: {missing.strerror}: the working directory")
    except BrokenPipeError:
        sys.exit("Error: write EPIPE")
