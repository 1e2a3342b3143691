"""Lend the terminal to another program and take it back: an attached pane, an editor, a pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

EDITORS = ("nano", "vi")
"""Looked for when neither VISUAL nor EDITOR names one."""
PAGERS = ("less", "more")
NO_TERMINAL = "This terminal cannot be lent to another program."


def hand_over(app: App[Any], argv: Sequence[str], *, environment: Mapping[str, str] | None = None) -> str:
    """Give the terminal to a program until it ends; return what went wrong, or an empty string.

    An exception or an await inside `suspend()` would leave the app without its terminal for good.
    """
    problem = ""
    try:
        with app.suspend():
            try:
                code = subprocess.run(list(argv), check=False, env=environment).returncode
                problem = f"{argv[0]} ended with exit code {code}" if code else ""
            except (OSError, ValueError) as error:
                problem = f"{argv[0]} could not be started: {error}"
    except SuspendNotSupported:
        return NO_TERMINAL
    app.refresh(layout=True)
    return problem


def edit_file(app: App[Any], path: str) -> str:
    """Open a file in the operator's editor until that ends; return what went wrong, or an empty string."""
    argv = _program(("VISUAL", "EDITOR"), EDITORS)
    return hand_over(app, (*argv, path)) if argv else "No editor was found: set EDITOR to the one you use."


def edit_text(app: App[Any], text: str, *, name: str = "task.md") -> tuple[str, str]:
    """Have a text changed in the operator's editor; return it as it is then, and what went wrong.

    `name` is the file's name, from which an editor knows the language. What went wrong leaves the text as it was.
    """
    with tempfile.TemporaryDirectory(prefix="subdeck-") as directory:
        file = Path(directory, name)
        try:
            file.write_text(text, encoding="utf-8")
            if problem := edit_file(app, str(file)):
                return text, problem
            return file.read_bytes().decode("utf-8", "replace"), ""
        except OSError as error:
            return text, f"The text could not be edited: {error}"


def page_file(app: App[Any], path: str) -> str:
    """Show a file in the operator's pager until that ends; return what went wrong, or an empty string."""
    argv = _program(("PAGER",), PAGERS)
    return hand_over(app, (*argv, path)) if argv else "No pager was found: set PAGER to the one you use."


def _program(variables: Sequence[str], usual: Sequence[str]) -> tuple[str, ...]:
    """Return the command of the first variable that holds one, else the first usual program there is."""
    for variable in variables:
        try:
            if words := shlex.split(os.environ.get(variable, "")):
                return tuple(words)
        except ValueError:
            continue  # an unclosed quote names no program
    return next(((program,) for program in usual if shutil.which(program)), ())
