"""Run the offline agent as pi is run: flags, a prompt on stdin, events on stdout, pi's exit codes."""

from __future__ import annotations

import os
import signal
import sys

from .answer import write_answer
from .directory import Directory
from .flags import BadArguments, parse_flags
from .reader import look
from .session import SessionError, open_session
from .stream import Conversation
from .task import understand
from .tools import Toolbox

DEFAULT_PACE_S = 0.01
"""Between two pieces of text."""


def main() -> int:
    """Do what the prompt asks; return the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os._exit(128 + number))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        flags = parse_flags(sys.argv[1:])
        cwd = os.getcwd()
        prompt = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").strip()
        session = open_session(flags.session, cwd)
        conversation = Conversation(sys.stdout.fileno(), session, _pace())
        conversation.emit(**{**session.header, "cwd": cwd})
        if not prompt:
            return 0
        conversation.begin(prompt)
        toolbox = Toolbox(Directory(cwd), flags.tools)
        findings = look(understand(prompt, toolbox.directory.kind), toolbox, conversation)
        conversation.answer(write_answer(findings, toolbox, session.earlier_tasks), flags.hands_over)
        return 0
    except (BadArguments, SessionError) as error:
        print(f"Error: {error}", file=sys.stderr)
    except FileNotFoundError as error:
        print(f"Error: {error.strerror}: the working directory", file=sys.stderr)
    except BrokenPipeError:
        print("Error: write EPIPE", file=sys.stderr)
    return 1


def _pace() -> float:
    try:
        return max(0.0, float(os.environ.get("SUBDECK_OFFLINE_PACE", "")))
    except ValueError:
        return DEFAULT_PACE_S


if __name__ == "__main__":
    sys.exit(main())
