"""What commands share: text that is fit for a terminal, one JSON document, errors, exit codes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import FollowingFailed, NotNoted, SubdeckError, UsageError, explained
from ..text.plain import one_line, plain

if TYPE_CHECKING:
    from ..run.changes import CheckResult
    from ..run.snapshot import RunSnapshot

ERROR_LINE = 4000
"""Characters of a part of an error that are shown."""
WIDE = 110
"""Columns where there is no terminal."""
LEAST = 20

BLOCK = 50
"""Lines that are written at once."""

NOTHING_STARTED = 2
NOT_NOTED = 1
"""Done, and without what undoing it needs."""
EXIT_CODES = {"completed": 0, "failed": 1, "aborted": 3}
"""By the status of a run."""
UNCHECKED = 4
"""For a run that completed and whose check did not pass."""

UNVERIFIED = "unverified"
"""The reason of a run whose program cannot report errors."""

TIMED_OUT = 124
"""The exit code of `timeout(1)`."""

INTERRUPTED = 130
"""What a shell reports for a program that ctrl-C ended."""

NOT_PRINTED = 1
"""The exit code of a command that did its work, but could not print what it found."""

INTERNAL_ERROR = 70
"""The exit code for an unexpected error, sysexits' EX_SOFTWARE; what was started continues."""

DELETED_CODE = 1
"""The exit code for a run that was started and then deleted, so that its end is not known."""


class OutputError(OSError):
    """stdout or stderr, which `filename` names, cannot be written, by no doing of its reader."""


def say(text: str) -> None:
    """Print a text of our own, or one that went through `plain`, on stdout."""
    _write(sys.stdout, text + "\n")


def say_lines(lines: Sequence[str]) -> None:
    """Print many lines: a block at a time, for which the same memory does again and again."""
    for start in range(0, len(lines), BLOCK):
        say("\n".join(lines[start : start + BLOCK]))


def note(text: str) -> None:
    """Print something for a person beside the answer, on stderr; where that cannot be, nothing is lost by it."""
    try:
        report(text + "\n")
    except OSError:
        pass  # its reader has gone


def report(text: str) -> None:
    """Print progress on stderr. Raises BrokenPipeError where its reader has gone; any other trouble is ignored."""
    try:
        _write(sys.stderr, text)
    except OutputError:
        pass  # a full disk behind it ends nothing


def pass_bytes(block: bytes) -> None:
    """Print the bytes of a file on stdout: as they are into a pipe or file, made plain for a terminal."""
    if is_terminal(sys.stdout):
        _write(sys.stdout, plain(block.decode("utf-8", "replace")))
    elif sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where stdout was closed
        with writing("stdout"):
            sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()


def pass_on(text: str) -> None:
    """Print foreign text on stdout: as it is into a pipe or file, made plain for a terminal."""
    whole = text if text.endswith("\n") else text + "\n"
    _write(sys.stdout, plain(whole) if is_terminal(sys.stdout) else whole)


def document(content: Any) -> None:
    """Print one JSON document on stdout; structs and their enums are allowed in it."""
    _write(sys.stdout, _json(content))


def error_fields(error: SubdeckError | OSError) -> dict[str, str]:
    """Return the one JSON form of errors."""
    if isinstance(error, OutputError):
        what = f"the output could not be written: {error.strerror}"
        error = SubdeckError(what, where=error.filename, code="output.failed")
    elif isinstance(error, OSError):
        error = explained(error)
    return {"code": error.code, "what": error.what, "where": error.where, "hint": as_typed(error.hint)}


def as_typed(words: str) -> str:
    """Return words of ours with the commands in them as they are typed here: for a demo `subdeck demo requests`."""
    from ..paths import is_demo  # help prints no hint, and does without it

    return re.sub(r"\bsubdeck (?=[a-z])(?!demo\b)", "subdeck demo ", words) if is_demo() else words


def show_error(error: SubdeckError | OSError, *, as_json: bool) -> None:
    """Print an error on stderr: for a person in up to three lines, or as JSON.

    Where stderr cannot be written, nobody is left to be told.
    """
    fields = {name: one_line(part, ERROR_LINE) for name, part in error_fields(error).items()}
    text = f"subdeck: {fields['what']}\n"
    if fields["where"] and fields["where"] not in fields["what"]:
        text += f"  where: {fields['where']}\n"
    if fields["hint"]:
        text += f"  hint: {fields['hint']}\n"
    try:
        _write(sys.stderr, _json({"error": fields}) if as_json else text)
    except OSError:
        pass  # who would read it has gone


def worst(runs: Iterable[RunSnapshot], *, strict: bool = False) -> int:
    """Return the exit code for several runs: a failed one outweighs an aborted one, and that a check that did not pass;
    an unfinished one counts as 0.
    """
    codes = {exit_code(run.status, run.check, run.reason, strict=strict) for run in runs}
    return next((code for code in (EXIT_CODES["failed"], EXIT_CODES["aborted"], UNCHECKED) if code in codes), 0)


def exit_code(status: str, check: CheckResult | None, reason: str | None = None, *, strict: bool = False) -> int:
    """Return the exit code for a run; 0 for one that has not ended. `strict` fails one whose end is unverified."""
    if strict and reason == UNVERIFIED:
        return EXIT_CODES["failed"]
    return EXIT_CODES.get(status, 0) or (UNCHECKED if check and check.failed else 0)


def terminal_width() -> int:
    """Return COLUMNS, or what the terminal says, as shutil does, which would load three compressors."""
    named = os.environ.get("COLUMNS", "")
    if named and re.fullmatch("0*[1-9][0-9]{0,4}", named):
        return max(LEAST, int(named))
    try:
        return max(LEAST, os.get_terminal_size(1).columns or WIDE)
    except OSError:
        return WIDE


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def check_can_ask(where: str, hint: str, *, as_json: bool = False) -> None:
    """Raise UsageError if nobody can be asked for confirmation."""
    if as_json or not is_terminal(sys.stdin):
        what = "--json cannot ask for confirmation" if as_json else "confirmation needed but stdin is not a terminal"
        raise UsageError(what, where=where, hint=hint, code="usage.confirmation_required")


def run_to_end(command: Callable[[], object], *, as_json: bool = False) -> int:
    """Run a command and return its exit code. Every SubdeckError ends here, as text or as a document on stderr."""
    try:
        code = command()
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        note("")
        return INTERRUPTED
    except BrokenPipeError:
        return NOT_PRINTED  # its reader has gone
    except OutputError as error:
        show_error(error, as_json=as_json)
        return NOT_PRINTED
    except FollowingFailed as error:
        show_error(error, as_json=as_json)
        return INTERNAL_ERROR
    except NotNoted as error:
        show_error(error, as_json=as_json)
        return NOT_NOTED
    except (SubdeckError, OSError) as error:
        show_error(error, as_json=as_json)
        return NOTHING_STARTED
    except Exception as error:
        from ..system.log import log_fault

        log_fault("in a command", error)
        show_error(explained(error), as_json=as_json)
        return INTERNAL_ERROR
    finally:
        drop_unwritten()


def drop_unwritten() -> None:
    """Forget what could not be written, so that the interpreter does not complain of it when it ends."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        if stream is None:
            continue  # it was closed before we were started
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _write(stream: TextIO | None, text: str) -> None:
    """Write and flush; a character that the locale does not have becomes `?`. Raises BrokenPipeError, OutputError."""
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    with writing("stderr" if stream is sys.stderr else "stdout"):
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()


@contextmanager
def writing(name: str) -> Generator[None]:
    """Raise OutputError for what goes wrong within, unless it is that the reader has gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror, name) from error


def _json(content: Any) -> str:
    import msgspec  # 30 ms that help does not need

    from ..text.visible import escaped_json

    try:
        encoded = msgspec.json.encode(content).decode()
    except UnicodeEncodeError:  # a path that is no UTF-8
        import json

        encoded = json.dumps(msgspec.to_builtins(content))
    return escaped_json(msgspec.json.format(encoded, indent=2)) + "\n"
