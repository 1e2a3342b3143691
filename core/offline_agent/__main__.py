"""Run the offline agent like pi: flags, prompt or commands on stdin, events on stdout, pi's exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from ._answer import Answer
from ._directory import TOOL_NAMES, Directory
from ._host import Aborted, Host, emit
from ._replacement import HOW
from ._stream import FINALIZE_TOOL, Conversation, Session
from ._task import Task

FINALIZE_EXTENSION, ASK_EXTENSION = "finalize.ts", "ask.ts"
"""The pi extensions that have an effect here; others are accepted and ignored."""

ASKED_TOOLS = "SUBDECK_ASKED_TOOLS"
"""The variable with the tools that need permission, separated by commas."""

USUAL_PACE_S = 0.01
"""Seconds between two pieces of text."""
LONGEST_PACE_S = 60


def main() -> None:
    """Process the prompt, or in rpc mode each prompt; raise SystemExit on failure."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os._exit(128 + number))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.umask(0o077)  # it writes only its session
    flags = _parse_flags()
    cwd = os.getcwd()
    if flags.mode == "rpc":
        session = Session(None if flags.no_session else flags.session, cwd)
        host = Host({"sessionId": session.header["id"], "sessionFile": flags.session})
        work = _Work(flags, cwd, session, host)
        while True:
            work.on(host.prompt())
    prompt = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    session = Session(None if flags.no_session else flags.session, cwd)
    emit(**session.header)
    if prompt:
        _Work(flags, cwd, session, None).on(prompt)


class _Work:
    """Processes a session's prompts."""

    def __init__(self, flags: argparse.Namespace, cwd: str, session: Session, host: Host | None) -> None:
        listed = [*TOOL_NAMES, FINALIZE_TOOL] if flags.tools is None else flags.tools.split(",")
        extensions = {os.path.basename(path) for path in flags.extensions}
        self._cwd = cwd
        self._session = session
        self._fault = ""
        """Why a task of this turn failed."""
        self._tools = [] if flags.no_tools else [name for name in TOOL_NAMES if name in listed]
        self._hands_over = FINALIZE_EXTENSION in extensions and FINALIZE_TOOL in listed
        asked = os.environ.get(ASKED_TOOLS, "").split(",") if ASK_EXTENSION in extensions else []
        self._conversation = Conversation(session, _pace(), host, asked)
        self._earlier = session.earlier_tasks

    def on(self, prompt: str) -> None:
        conversation = self._conversation
        conversation.begin(prompt)
        self._fault = ""
        try:
            answers = [self._answer(prompt)]
            while answers:
                while message := conversation.further():
                    answers.append(self._answer(message))
                conversation.answer("\n\n".join(answers), self._hands_over, self._fault)
                answers = [self._answer(message)] if (message := conversation.further()) else []
        except Aborted:
            conversation.end(aborted=True)
        else:
            conversation.end()

    def _answer(self, prompt: str) -> str:
        directory = Directory(self._cwd)
        answer = Answer(Task(prompt, directory.kind), directory, self._tools, self._conversation)
        earlier, self._earlier = self._earlier, self._earlier + 1
        text = answer.write(earlier)
        self._fault = answer.fault or self._fault
        return text


def _pace() -> float:
    try:
        pace = float(os.environ.get("SUBDECK_OFFLINE_PACE", ""))
    except ValueError:
        return USUAL_PACE_S
    return pace if 0 <= pace <= LONGEST_PACE_S else USUAL_PACE_S


def _parse_flags() -> argparse.Namespace:
    """Parse the pi flags that the engine passes; exit with code 2 if they are invalid."""
    parser = argparse.ArgumentParser(
        prog="python -P -E -m subdeck.core.offline_agent",
        usage="%(prog)s --mode json [options] <prompt.md\n       %(prog)s --mode rpc [options]",
        description="Searches the working directory for the task on stdin, without a model, a key or the "
        f"network. A task of the form {HOW} edits that file. pi flags that make no sense without "
        "a model are accepted and ignored.",
        epilog="SUBDECK_OFFLINE_PACE: seconds between two pieces of text (default 0.01; 0 for none, at most 60)",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--mode", choices=["json", "rpc"], required=True, help="json: one prompt on stdin; rpc: commands")
    add("--session", metavar="PATH", help="write the session to this file, or continue it")
    add("--no-session", action="store_true", help="keep no session, as without --session")
    add("--tools", help=f"comma-separated allowlist of {', '.join(TOOL_NAMES)}; other names are ignored")
    add("--no-tools", action="store_true", help="no tools: nothing is read or changed")
    says = (
        f"{FINALIZE_EXTENSION} makes it return a structured result, {ASK_EXTENSION} makes it ask "
        "for permission to use its tools"
    )
    add("-e", dest="extensions", metavar="PATH", action="append", default=[], help=says)
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
