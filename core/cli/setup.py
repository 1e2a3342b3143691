"""`subdeck doctor` and `settings`: show the set-up of this machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import astuple

from ..paths import user_settings_file
from ..text.plain import one_line
from ..trust import own_project
from ._command import Document, command
from ._options import OneOf
from .output import NOTHING_STARTED, Note, Output, Piece, say

if TYPE_CHECKING:
    from ..doctor import Check
    from ..settings_check import Severity


class Report(Document, frozen=True):
    """The checks of this machine and project."""

    ok: bool
    """Whether no check found a problem."""
    checks: tuple[Check, ...]


@command(
    "doctor",
    "subdeck doctor",
    "subdeck doctor --json",
)
def doctor() -> Output[Report]:
    """Check everything that subdeck needs, without changing anything.

    Problems and warnings come first, then a summary in one line, then everything that works.
    The exit code is 2 if a settings file is invalid, 1 if another problem stops runs from starting here, otherwise 0.
    """
    from ..doctor import SYMBOLS, State as CheckState, examine, summary, worst_first

    checks = examine()
    broken = [check.name for check in checks if check.state is CheckState.PROBLEM]
    code = NOTHING_STARTED if "settings" in broken else min(1, len(broken))

    def text() -> Iterator[Piece]:
        is_summed_up = False
        for check in worst_first(checks):
            if check.state is CheckState.OK and not is_summed_up:
                is_summed_up = True
                yield summary(checks)
            yield f"{SYMBOLS[check.state]} {check.state:<8} {check.name:<9} {one_line(check.detail)}"
            if check.fix:
                yield f"{'':<21}→ {one_line(check.fix)}"

    return Output(Report(not broken, checks), text(), code)


class SettingsFiles(Document, frozen=True):
    user: str
    project: str


class EffectiveSettings(Document, frozen=True):
    """The effective settings."""

    files: SettingsFiles
    """Their files, even if these do not exist."""
    settings: dict[str, Any]
    """By key, such as `retention.keep`; old spellings of keys are included."""
    notices: tuple[str, ...]
    """Warnings about the files."""


class SettingsProblem(Document, frozen=True):
    severity: Severity
    """error: commands refuse the settings. warning: something does not work. notice: a part has no effect."""
    where: str
    """Path and line, `path:12`; only the path if no single line is at fault."""
    what: str
    hint: str


class CheckedSettings(Document, frozen=True):
    """With check."""

    ok: bool
    """Whether there is neither an error nor a warning."""
    checked: tuple[str, ...]
    """The files that exist."""
    problems: tuple[SettingsProblem, ...]


@command(
    "settings",
    "subdeck settings",
    "subdeck settings check",
    "subdeck settings --example > config.yaml",
)
@click.argument("action", type=OneOf(["show", "check"]), default="show")
@click.option("--example", is_flag=True, help="Print an example settings file: the most used settings, explained.")
def settings(action: str, example: bool) -> Output[EffectiveSettings | CheckedSettings] | None:
    """Show the effective settings here, and the files that they come from.

    `check` reads both settings files and the files that they lead to, and prints each problem with its file and line.
    Its exit code is 2 if commands refuse the settings, 1 if something in them does not work, otherwise 0.
    """
    if action == "check":
        return _check_settings()
    from ..config.files import KEYS, OLD_NAMES, example_settings, value_of
    from ..engine import Engine

    if example:
        say(example_settings().rstrip("\n"))
        return None
    engine = Engine.open()
    values = {key: msgspec.to_builtins(value_of(engine.settings, key)) for key in KEYS}
    files = SettingsFiles(user_settings_file(), engine.project.settings_file)
    old_names = {old: values[new] for old, new in OLD_NAMES.items()}
    document = EffectiveSettings(files, values | old_names, engine.settings.notices)

    def text() -> Iterator[Piece]:
        for name, path in (("user", files.user), ("project", files.project)):
            yield f"# {name}: {one_line(path)}{'' if os.path.isfile(path) else ' (does not exist)'}"
        for key, value in values.items():
            yield f"{key}: {one_line(msgspec.json.encode(value).decode())}" if value is not None else f"{key}:"
        for notice in document.notices:
            yield Note(f"! {one_line(notice)}")

    return Output(document, text())


def _check_settings() -> Output[CheckedSettings]:
    from ..settings_check import check

    findings = check(own_project(os.getcwd()))
    severities = {problem.severity for problem in findings.problems}
    code = NOTHING_STARTED if "error" in severities else int("warning" in severities)
    problems = tuple(SettingsProblem(*astuple(problem)) for problem in findings.problems)

    def text() -> Iterator[Piece]:
        for problem in problems:
            mark = "✗" if problem.severity == "error" else "!"
            yield f"{mark} {one_line(problem.where, 1000)}: {one_line(problem.what, 1000)}"
            if problem.hint:
                yield f"  → {one_line(problem.hint, 1000)}"
        counts = Counter(problem.severity for problem in problems)
        named = ", ".join(f"{count} {severity}{'s' * (count > 1)}" for severity, count in counts.items())
        where = ", ".join(map(one_line, findings.files)) or f"no file; subdeck would read {user_settings_file()}"
        yield f"{named or 'No problems'}. Checked: {where}"

    return Output(CheckedSettings(not code, findings.files, problems), text(), code)
