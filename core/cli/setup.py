"""`subdeck doctor`, `settings` and `pi`: show the set-up of this machine, and complete it.

`doctor` and `settings` import their own parts of the engine when they are called: `pi` does not need them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from .. import trust
from ..errors import SubdeckError
from ..paths import Project, agent_dir, user_settings_file
from ..pi_parent.installer import Installation, State, installation, own_command
from ..text.plain import one_line
from ..text.shell import shell_words
from ._command import Document, command
from ._options import OneOf
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
    """By key, such as `retention.keep`; old names of keys are included."""
    notices: tuple[str, ...]
    """Warnings about the files."""


@command(
    "settings",
    "subdeck settings",
    "subdeck settings --example > config.yaml",
)
@click.option("--example", is_flag=True, help="Print an example settings file: every key explained and commented out.")
def settings(example: bool) -> Output[EffectiveSettings] | None:
    """Show the effective settings here, and the files that they come from."""
    from ..config.files import KEYS, example_settings, value_of
    from ..config.renamed import SETTINGS
    from ..engine import Engine

    if example:
        say(example_settings().rstrip("\n"))
        return None
    engine = Engine.open()
    values = {key: msgspec.to_builtins(value_of(engine.settings, key)) for key in KEYS}
    files = SettingsFiles(user_settings_file(), engine.project.settings_file)
    old_names = {old: values[new] for old, new in SETTINGS.items()}
    document = EffectiveSettings(files, values | old_names, engine.settings.notices)

    def text() -> Iterator[Piece]:
        for name, path in (("user", files.user), ("project", files.project)):
            yield f"# {name}: {one_line(path)}{'' if os.path.isfile(path) else ' (does not exist)'}"
        for key, value in values.items():
            yield f"{key}: {one_line(msgspec.json.encode(value).decode())}" if value is not None else f"{key}:"
        for notice in document.notices:
            yield Note(f"! {one_line(notice)}")

    return Output(document, text())


class PiFile(Document, frozen=True):
    path: str
    state: State


class PiStatus(Document, frozen=True):
    """With status."""

    installed: bool
    command: tuple[str, ...]
    """The program that the extension starts."""
    files: tuple[PiFile, ...]


class PiInstalled(Document, frozen=True):
    """With install."""

    extension: str
    """Path of the extension."""
    prompts: tuple[str, ...]
    """Paths of the prompt templates."""
    left_alone: tuple[str, ...]
    """Paths of files that subdeck did not create, or that were edited."""
    command: tuple[str, ...]


class PiRemoved(Document, frozen=True):
    """With uninstall."""

    removed: tuple[str, ...]
    left_alone: tuple[str, ...]


@command(
    "pi",
    "subdeck pi",
    "subdeck pi install",
    "subdeck pi uninstall --project",
)
@click.argument("action", type=OneOf(["status", "install", "uninstall"]), default="status")
@click.option("--project", is_flag=True, help="Use this project's .pi instead of pi's own directory.")
def pi(action: str, project: bool) -> Output[PiStatus | PiInstalled | PiRemoved]:
    """Install the tools subagent, background_agent, background_agent_status and background_agent_send into pi.

    `install` writes one extension and five prompt templates and prints their paths; `uninstall` removes exactly these.
    Files that subdeck did not create, or that were edited, stay unchanged. `status` (the default) shows what is
    installed.
    """
    directory = os.path.join(_own_project().root, ".pi") if project else os.path.abspath(agent_dir())
    here = installation(directory)
    match action:
        case "install":
            return _install(here, project)
        case "uninstall":
            return _uninstall(here)
        case _:
            return _status(here, project)


def _own_project() -> Project:
    """Find the project of this directory. Raises UsageError if its `.pi` is another user's or leads out of it."""
    found = trust.find_project(os.getcwd())
    trust.check(found)
    return found


def _install(here: Installation, project: bool) -> Output[PiInstalled]:
    left_alone = here.install()
    prompts = tuple(prompt.path for prompt in here.prompts if prompt.path not in left_alone)
    document = PiInstalled(here.extension.path, prompts, left_alone, own_command())

    def text() -> Iterator[Piece]:
        yield f"The extension is {one_line(document.extension)}"
        if prompts:
            names = ", ".join(f"/{os.path.splitext(os.path.basename(path))[0]}" for path in prompts)
            yield f"The prompt templates {names} are in {one_line(os.path.dirname(prompts[0]))}"
        yield "Start pi, or type /reload in a pi that is already running."
        for path in left_alone:
            yield Note(f"! left unchanged, not created by subdeck: {one_line(path)}")
        if project:
            yield Note(f"pi loads it when you start pi in {one_line(trust.find_project(os.getcwd()).root)}.")
            yield from _trust_note()
            yield Note("It contains a path on this machine: do not commit it.")

    return Output(document, text())


def _trust_note() -> Iterator[Note]:
    """Explain that a newer pi reads nothing of an untrusted project: without trust there is no tool and no warning."""
    from ..agents.choice import choose_agent
    from ..agents.pi.program import TRUST_SINCE
    from ..agents.program import is_since
    from ..config.workspace import load_settings

    try:
        version = choose_agent("pi", load_settings(trust.find_project(os.getcwd()))).version
    except SubdeckError:
        version = None
    if is_since(version, TRUST_SINCE) is not False:
        yield Note(
            "pi 0.79 and later loads it only in a trusted project: type /trust in pi, or start pi with --approve."
        )


def _uninstall(here: Installation) -> Output[PiRemoved]:
    removed, edited = here.uninstall()
    text = (
        "\n".join(f"removed {one_line(path)}" for path in removed) or "Nothing was installed.",
        *(Note(f"! left unchanged, because it was edited: {one_line(path)}") for path in edited),
    )
    return Output(PiRemoved(removed, edited), text)


def _status(here: Installation, project: bool) -> Output[PiStatus]:
    files = tuple(PiFile(place.path, place.state) for place in here.places)

    def text() -> Iterator[Piece]:
        yield [f"{file.state:<9} {one_line(file.path)}" for file in files]
        yield f"It starts {one_line(shell_words(own_command()))}"
        if any(file.state in (State.ABSENT, State.OUTDATED) for file in files):
            yield Note("subdeck pi install installs what is missing or outdated.")
        if project and here.is_there:
            yield from _trust_note()

    return Output(PiStatus(here.is_there, own_command(), files), text())
