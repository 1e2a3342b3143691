"""`subdeck doctor` and `settings`: show the set-up of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..paths import user_settings_file
from ..text.plain import one_line
from ._command import Document, command
from .output import NOTHING_STARTED, Note, Output, Piece, say

if TYPE_CHECKING:
    from ..doctor import Check


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

    The exit code is 2 if a settings file is invalid, 1 if another problem stops runs from starting here, otherwise 0.
    """
    from ..doctor import SYMBOLS, State as CheckState, examine

    checks = examine()
    broken = [check.name for check in checks if check.state is CheckState.PROBLEM]
    code = NOTHING_STARTED if "settings" in broken else min(1, len(broken))

    def text() -> Iterator[Piece]:
        for check in checks:
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


@command(
    "settings",
    "subdeck settings",
    "subdeck settings --example > config.yaml",
)
@click.option(
    "--example",
    is_flag=True,
    help="Print an example settings file: the most used settings, explained and commented out.",
)
def settings(example: bool) -> Output[EffectiveSettings] | None:
    """Show the effective settings here, and the files that they come from."""
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
