"""The output of commands, in one place: text that is safe for a terminal, JSON documents, errors, exit codes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar

from ..errors import FollowingFailed, NotNoted, SubdeckError, explained
from ..text.plain import disarmed, one_line, plain

if TYPE_CHECKING:
    from ..run.changes import CheckResult
    from ..run.snapshot import RunSnapshot

ERROR_LINE = 4000
"""Maximum characters of a part of an error."""
WIDE = 110
"""Columns without a terminal."""
LEAST = 20

BLOCK = 50
"""Lines per write."""

NOTHING_STARTED = 2
NOT_NOTED = 1
"""The exit code of an action that is done but cannot be undone."""
EXIT_CODES = {"completed": 0, "failed": 1, "aborted": 3}
"""By the status of a run."""
UNCHECKED = 4
"""The exit code for a completed run whose check failed."""

UNVERIFIED = "unverified"
"""The reason of a run whose program cannot report errors."""

TIMED_OUT = 124
"""The exit code of `timeout(1)`."""

INTERRUPTED = 130
"""What a shell reports for a program that ctrl-C ended."""

NOT_PRINTED = 1
"""The exit code of a command that did its work, but could not print the result."""

INTERNAL_ERROR = 70
"""The exit code for an unexpected error, sysexits' EX_SOFTWARE; started runs continue."""

DELETED_CODE = 1
"""The exit code for a run that was deleted after its start: its result is unknown."""


T_co = TypeVar("T_co", covariant=True)


class OutputError(OSError):
    """Writing to stdout or stderr (the `filename`) failed, though its reader is still there."""


class Note(str):
    """A line for stderr, in the text of a command."""


class Coloured(str):
    """A line of safe text with subdeck's own colours: printed as it is."""


class Verbatim(str):
    """An agent's text: printed on stdout unchanged, but without control characters on a terminal."""


Piece = str | bytes | Sequence[str]
"""A piece of a command's text: a line or paragraph, the bytes of a file, or a list of lines."""


class Output(Generic[T_co]):
    """The result of a command, which `render` prints: as a JSON document, or as text."""

    def __init__(
        self,
        document: T_co | Callable[[], T_co],
        text: str | Iterable[Piece] = (),
        code: int | Callable[[], int] = 0,
        *,
        note: str = "",
        is_done: bool = False,
    ) -> None:
        """`document` and `text` are computed only if they are printed: pass a function, or a generator.

        `code` is the exit code; a function is called after printing. `note` is printed on stderr, with `--json` and
        without. `is_done`: an output that cannot be printed does not change the exit code.
        """
        self.document = document
        self.text = (text,) if isinstance(text, str) else text
        self.code = code
        self.note = note
        self.is_done = is_done


def render(output: Output[Any], *, as_json: bool) -> int:
    """Print the result of a command and return its exit code."""
    try:
        if as_json:
            document(output.document() if callable(output.document) else output.document)
        else:
            show(output.text)
    except BrokenPipeError:
        if not output.is_done:
            raise
    except OSError as error:
        if not output.is_done:
            raise
        show_error(error, as_json=as_json)
    if output.note:
        note(output.note)
    return output.code() if callable(output.code) else output.code


def show(pieces: Iterable[Piece]) -> None:
    """Print pieces of text, each as it comes."""
    for piece in pieces:
        match piece:
            case Note():
                note(piece)
            case Verbatim():
                pass_on(piece)
            case str():
                say(piece)
            case bytes():
                pass_bytes(piece)
            case _:
                say_lines(piece)


def say(text: str) -> None:
    """Print a text on stdout."""
    _write(sys.stdout, _safe(text) + "\n")


def say_lines(lines: Sequence[str]) -> None:
    """Print many lines in blocks, which saves memory."""
    for start in range(0, len(lines), BLOCK):
        _write(sys.stdout, "\n".join(map(_safe, lines[start : start + BLOCK])) + "\n")


def note(text: str) -> None:
    """Print a remark for a person on stderr; a failure is ignored."""
    try:
        report(text + "\n")
    except OSError:
        pass  # its reader has gone


def report(text: str) -> None:
    """Print progress on stderr. Raises BrokenPipeError if its reader has gone; other failures are ignored."""
    try:
        _write(sys.stderr, _safe(text))
    except OutputError:
        pass  # such as a full disk


def pass_bytes(block: bytes) -> None:
    """Print the bytes of a file on stdout: unchanged into a pipe or file, without control characters on a terminal."""
    if is_terminal(sys.stdout):
        _write(sys.stdout, plain(block.decode("utf-8", "replace")))
    elif sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where stdout was closed
        with writing("stdout"):
            sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()


def pass_on(text: str) -> None:
    """Print untrusted text on stdout: unchanged into a pipe or file, without control characters on a terminal."""
    whole = text if text.endswith("\n") else text + "\n"
    _write(sys.stdout, plain(whole) if is_terminal(sys.stdout) else whole)


def document(content: Any) -> None:
    """Print one JSON document on stdout; structs and their enums are allowed in it."""
    _write(sys.stdout, _json(content))


def error_fields(error: SubdeckError | OSError) -> dict[str, str]:
    """Return an error as it is in JSON."""
    if isinstance(error, OutputError):
        what = f"the output could not be written: {error.strerror}"
        error = SubdeckError(what, where=error.filename, code="output.failed")
    elif isinstance(error, OSError):
        error = explained(error)
    return {"code": error.code, "what": error.what, "where": error.where, "hint": as_typed(error.hint)}


def as_typed(words: str) -> str:
    """Return a text with its commands as they are typed here: in a demo `subdeck demo requests`."""
    from ..paths import is_demo  # not needed for help

    return re.sub(r"\bsubdeck (?=[a-z])(?!demo\b)", "subdeck demo ", words) if is_demo() else words


def show_error(error: SubdeckError | OSError, *, as_json: bool) -> None:
    """Print an error on stderr, in up to three lines or as JSON. A failure to print is ignored."""
    fields = {name: one_line(part, ERROR_LINE) for name, part in error_fields(error).items()}
    text = f"subdeck: {fields['what']}\n"
    if fields["where"] and fields["where"] not in fields["what"]:
        text += f"  where: {fields['where']}\n"
    if fields["hint"]:
        text += f"  hint: {fields['hint']}\n"
    try:
        _write(sys.stderr, _json({"error": fields}) if as_json else text)
    except OSError:
        pass  # its reader has gone


def worst(runs: Iterable[RunSnapshot], *, strict: bool = False) -> int:
    """Return the exit code for several runs: failed outweighs aborted, and aborted a failed check.

    An unfinished run counts as 0.
    """
    codes = {exit_code(run.status, run.check, run.reason, strict=strict) for run in runs}
    return next((code for code in (EXIT_CODES["failed"], EXIT_CODES["aborted"], UNCHECKED) if code in codes), 0)


def exit_code(status: str, check: CheckResult | None, reason: str | None = None, *, strict: bool = False) -> int:
    """Return the exit code for a run; 0 for an unfinished run. `strict` fails a run whose end is unverified."""
    if strict and reason == UNVERIFIED:
        return EXIT_CODES["failed"]
    return EXIT_CODES.get(status, 0) or (UNCHECKED if check and check.failed else 0)


def terminal_width() -> int:
    """Return COLUMNS, or the width of the terminal, like shutil, which would load three compressors."""
    named = os.environ.get("COLUMNS", "")
    if named and re.fullmatch("0*[1-9][0-9]{0,4}", named):
        return max(LEAST, int(named))
    try:
        return max(LEAST, os.get_terminal_size(1).columns or WIDE)
    except OSError:
        return WIDE


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


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
    """Discard unwritten output, so that the interpreter does not report it at its exit."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        if stream is None:
            continue  # it was closed before the start
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _safe(text: str) -> str:
    """Return a text without control characters."""
    return text if isinstance(text, Coloured) else disarmed(text)


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
    """Turn OSError into OutputError, except for BrokenPipeError: then the reader has gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror, name) from error


def _json(content: Any) -> str:
    import msgspec  # 30 ms, not needed for help

    from ..text.visible import escaped_json

    try:
        encoded = msgspec.json.encode(content).decode()
    except UnicodeEncodeError:  # a path that is not UTF-8
        import json

        encoded = json.dumps(msgspec.to_builtins(content))
    return escaped_json(msgspec.json.format(encoded, indent=2)) + "\n"
