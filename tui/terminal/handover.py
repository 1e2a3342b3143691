"""Lend the terminal to another program until it ends: an attached pane, an editor, a pager."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from ...core.errors import reason

EDITORS = ("nano", "vi")
"""Tried if neither VISUAL nor EDITOR is set."""
PAGERS = ("less", "more")
NO_TERMINAL = "Cannot start another program in this terminal."


def hand_over(app: App[Any], argv: Sequence[str], *, environment: Mapping[str, str] | None = None) -> str:
    """Give the terminal to a program until it ends; return the error, or an empty string."""

    def run() -> str:
        code = subprocess.run(list(argv), check=False, env=environment).returncode
        return f"{argv[0]} failed with exit code {code}" if code else ""

    return _lent(app, argv[0], run)


def _lent(app: App[Any], program: str, run: Callable[[], str]) -> str:
    """Do something without the app; return its result, or why it could not be done.

    An exception or an await inside `suspend()` would leave the app without its terminal for good.
    """
    problem = ""
    # ctrl-C ends the program: a handler, unlike SIG_IGN, is not inherited.
    former = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        with app.suspend():
            try:
                problem = run()
            except (OSError, ValueError) as error:
                problem = f"Cannot start {program}: {reason(error)}"
    except SuspendNotSupported:
        return NO_TERMINAL
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if former is None else former)
    app.refresh(layout=True)
    return problem


def pipe_file(app: App[Any], path: str, command: str, *, cwd: str) -> str:
    """Run a command in your shell with a file as its stdin; return the error.

    Its output stays on the screen until Enter is pressed.
    """
    shell = os.environ.get("SHELL") or "/bin/sh"

    def run() -> str:
        with open(path, "rb") as text:
            code = subprocess.run((shell, "-c", command), check=False, stdin=text, cwd=cwd).returncode
        _wait_for_enter(code)
        return ""

    return _lent(app, shell, run)


def _wait_for_enter(code: int) -> None:
    """Print a program's exit code on the lent terminal, and wait for Enter."""
    ended = f"exit code {code}; " if code else ""
    os.write(1, f"\n[{ended}Press Enter to return to subdeck] ".encode())
    while (typed := os.read(0, 1024)) and b"\n" not in typed:
        continue


def edit_file(app: App[Any], path: str, *, line: int | None = None) -> str:
    """Open a file in your editor, at a line if the editor supports it, until it ends; return the error."""
    argv = _program(("VISUAL", "EDITOR"), EDITORS)
    if not argv:
        return "No editor found. Set EDITOR to your editor."
    return hand_over(app, (*argv, *_at_line(argv[0], path, line)))


_PLUS_LINE = frozenset(
    (
        "vi",
        "vim",
        "nvim",
        "view",
        "gvim",
        "nano",
        "pico",
        "emacs",
        "emacsclient",
        "kak",
        "micro",
        "joe",
        "jed",
        "mg",
        "ne",
    )
)
"""Editors that take `+40 file`."""
_COLON_LINE = frozenset(("hx", "helix", "zed", "subl"))
"""Editors that take `file:40`."""
_GOTO = frozenset(("code", "code-insiders", "codium", "cursor", "windsurf"))
"""Editors that take `--goto file:40`."""


def _at_line(program: str, path: str, line: int | None) -> tuple[str, ...]:
    """Return the arguments that open a file at a line; for an unknown editor only the file."""
    name = os.path.basename(program)
    if line is None:
        return (path,)
    if name in _PLUS_LINE:
        return (f"+{line}", path)
    if name in _COLON_LINE:
        return (f"{path}:{line}",)
    return ("--goto", f"{path}:{line}") if name in _GOTO else (path,)


def edit_text(app: App[Any], text: str, *, name: str = "task.md") -> tuple[str, str]:
    """Edit a text in your editor; return the new text, and the error.

    The editor recognizes the language by the file's `name`. An error leaves the text unchanged.
    """
    with tempfile.TemporaryDirectory(prefix="subdeck-") as directory:
        file = Path(directory, name)
        try:
            file.write_text(text, encoding="utf-8")
            if problem := edit_file(app, str(file)):
                return text, problem
            return file.read_bytes().decode("utf-8", "replace"), ""
        except OSError as error:
            return text, f"Cannot edit the text: {reason(error)}"


def page_file(app: App[Any], path: str) -> str:
    """Show a file in your pager until it ends; return the error, or an empty string."""
    argv = _program(("PAGER",), PAGERS)
    return hand_over(app, (*argv, path)) if argv else "No pager found. Set PAGER to your pager."


def page_with(app: App[Any], program: Sequence[str], path: str) -> str:
    """Show a file in a program that reads its stdin, by default in your pager; return the error."""
    if not program:
        return page_file(app, path)

    def run() -> str:
        with open(path, "rb") as text:
            code = subprocess.run(list(program), check=False, stdin=text).returncode
        return f"{program[0]} failed with exit code {code}" if code else ""

    return _lent(app, program[0], run)


def _program(variables: Sequence[str], usual: Sequence[str]) -> tuple[str, ...]:
    """Return the command of the first variable that has one, otherwise the first installed usual program."""
    for variable in variables:
        try:
            if words := shlex.split(os.environ.get(variable, "")):
                return tuple(words)
        except ValueError:
            continue  # an unclosed quote names no program
    return next(((program,) for program in usual if shutil.which(program)), ())
