"""Run the offline reader as pi is run: flags, a prompt on stdin, events on stdout."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from .. import __version__
from .arguments import HELP, THINKING_LEVELS, BadArguments, Options, parse_arguments
from .reader import answer_prompt
from .session import Session, SessionError, open_session
from .stream import EventStream

DEFAULT_PACE = 0.01
"""Seconds between two pieces of text."""


def main() -> int:
    """Return every prompt of the command line; the exit codes are pi's."""
    _die_like_pi()
    try:
        options = parse_arguments(sys.argv[1:])
        if options.show:
            print(HELP if options.show == "help" else __version__, end="" if options.show == "help" else "\n")
            return 0
        _warn(options)
        cwd = os.getcwd()
        prompts = _prompts(options)
        session = open_session(options, cwd)
        return _answer(prompts, cwd, options, session)
    except (BadArguments, SessionError) as error:
        print(f"Error: {error}", file=sys.stderr)
    except FileNotFoundError as error:
        print(f"Error: {error.strerror}: {error.filename or 'the working directory'}", file=sys.stderr)
    except BrokenPipeError:
        print("Error: write EPIPE", file=sys.stderr)
    return 1


def _answer(prompts: list[str], cwd: str, options: Options, session: Session) -> int:
    stream = EventStream(sys.stdout.fileno(), _pace())
    stream.emit("session", **{**{key: session.header[key] for key in session.header if key != "type"}, "cwd": cwd})
    for prompt in prompts:
        answer_prompt(
            prompt, cwd=cwd, tools=options.tools, stream=stream, session=session, hands_over=options.hands_over
        )
        session.earlier_turns += 1
    return 0


def _die_like_pi() -> None:
    """Make SIGTERM and SIGHUP end the stream where it is, with pi's exit codes; SIGINT kills."""

    def leave(number: int, frame: FrameType | None) -> None:
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _warn(options: Options) -> None:
    if options.thinking not in THINKING_LEVELS:
        levels = ", ".join(THINKING_LEVELS)
        print(f'Warning: Invalid thinking level "{options.thinking}". Valid values: {levels}', file=sys.stderr)


def _prompts(options: Options) -> list[str]:
    """Put stdin and `@files` directly before the first message, as pi does; each further message is its own prompt."""
    piped = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    attached = "".join(_attached(path) for path in options.files)
    messages = [message.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for message in options.messages]
    first = attached + piped + (messages[0] if messages else "")
    return [prompt for prompt in (first, *messages[1:]) if prompt.strip()]


def _attached(path: str) -> str:
    full = os.path.abspath(path)
    try:
        with open(full, encoding="utf-8", errors="replace") as file:
            return f'<file name="{full}">\n{file.read()}\n</file>\n'
    except OSError as error:
        raise BadArguments(f"File not found: {full}") from error


def _pace() -> float:
    try:
        return max(0.0, float(os.environ.get("SUBDECK_OFFLINE_PACE", "")))
    except ValueError:
        return DEFAULT_PACE


if __name__ == "__main__":
    sys.exit(main())
