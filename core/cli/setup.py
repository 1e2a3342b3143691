"""`subdeck doctor`, `settings` and `pi`: what is set up here, and what is missing.

`doctor` and `settings` import their own parts of the engine, which `pi` does without.
"""

from __future__ import annotations

import os

import click
import msgspec

from .. import trust
from ..errors import SubdeckError
from ..paths import Project, agent_dir, user_settings_file
from ..pi_parent.installer import Installation, State, installation, own_command
from ..text.plain import one_line
from ..text.shell import shell_words
from ._options import OneOf, json_option
from .output import NOTHING_STARTED, document, note, say


@click.command("doctor")
@json_option
def doctor(as_json: bool) -> int:
    """Check everything that subdeck needs, without changing anything.

    The exit code is 2 if a settings file is invalid, 1 if another problem stops runs from starting here, otherwise 0.
    """
    from ..doctor import SYMBOLS, State as CheckState, examine

    checks = examine()
    broken = [check.name for check in checks if check.state is CheckState.PROBLEM]
    code = NOTHING_STARTED if "settings" in broken else min(1, len(broken))
    if as_json:
        document({"ok": not broken, "checks": checks})
        return code
    for check in checks:
        say(f"{SYMBOLS[check.state]} {check.state:<8} {check.name:<9} {one_line(check.detail)}")
        if check.fix:
            say(f"{'':<21}→ {one_line(check.fix)}")
    return code


@click.command("settings")
@click.option("--example", is_flag=True, help="Print an example settings file: every key explained and commented out.")
@json_option
def settings(example: bool, as_json: bool) -> None:
    """Show the effective settings here, and the files that they come from."""
    from ..config.files import KEYS, example_settings, value_of
    from ..config.renamed import SETTINGS
    from ..engine import Engine

    if example:
        say(example_settings().rstrip("\n"))
        return
    engine = Engine.open()
    values = {key: msgspec.to_builtins(value_of(engine.settings, key)) for key in KEYS}
    files = {"user": user_settings_file(), "project": engine.project.settings_file}
    if as_json:
        old_names = {old: values[new] for old, new in SETTINGS.items()}
        document({"files": files, "settings": values | old_names, "notices": engine.settings.notices})
        return
    for name, path in files.items():
        say(f"# {name}: {one_line(path)}{'' if os.path.isfile(path) else ' (does not exist)'}")
    for key, value in values.items():
        say(f"{key}: {one_line(msgspec.json.encode(value).decode())}" if value is not None else f"{key}:")
    for notice in engine.settings.notices:
        note(f"! {one_line(notice)}")


@click.command("pi")
@click.argument("action", type=OneOf(["status", "install", "uninstall"]), default="status")
@click.option("--project", is_flag=True, help="Use this project's .pi instead of pi's own directory.")
@json_option
def pi(action: str, project: bool, as_json: bool) -> None:
    """Install the tools subagent, background_agent, background_agent_status and background_agent_send into pi.

    `install` writes one extension and five prompt templates and prints their paths; `uninstall` removes exactly these.
    Files that subdeck did not create, or that were edited, stay unchanged. `status` (the default) shows what is
    installed.
    """
    directory = os.path.join(_own_project().root, ".pi") if project else os.path.abspath(agent_dir())
    here = installation(directory)
    match action:
        case "install":
            _install(here, project, as_json)
        case "uninstall":
            _uninstall(here, as_json)
        case _:
            _status(here, as_json)
            if project and not as_json and here.is_there:
                _note_trust()


def _own_project() -> Project:
    """Find the project of this directory. Raises UsageError where its `.pi` is another user's or leads out of it."""
    found = trust.find_project(os.getcwd())
    trust.check(found)
    return found


def _install(here: Installation, project: bool, as_json: bool) -> None:
    left_alone = here.install()
    prompts = [prompt.path for prompt in here.prompts if prompt.path not in left_alone]
    if as_json:
        paths = {"extension": here.extension.path, "prompts": prompts, "leftAlone": left_alone}
        document({**paths, "command": own_command()})
        return
    say(f"The extension is {one_line(here.extension.path)}")
    if prompts:
        names = ", ".join(f"/{os.path.splitext(os.path.basename(path))[0]}" for path in prompts)
        say(f"The prompt templates {names} are in {one_line(os.path.dirname(prompts[0]))}")
    say("Start pi, or type /reload in a pi that is already running.")
    for path in left_alone:
        note(f"! left unchanged, not created by subdeck: {one_line(path)}")
    if project:
        note(f"pi loads it when you start pi in {one_line(trust.find_project(os.getcwd()).root)}.")
        _note_trust()
        note("It contains a path on this machine: do not commit it.")


def _note_trust() -> None:
    """Say what a newer pi asks for before it reads anything of a project; without it there is no tool and no word."""
    from ..agents.choice import choose_agent
    from ..agents.pi.program import TRUST_SINCE
    from ..agents.program import is_since
    from ..config.workspace import load_settings

    try:
        version = choose_agent("pi", load_settings(trust.find_project(os.getcwd()))).version
    except SubdeckError:
        version = None
    if is_since(version, TRUST_SINCE) is not False:
        note("pi 0.79 and later loads it only in a trusted project: type /trust in pi, or start pi with --approve.")


def _uninstall(here: Installation, as_json: bool) -> None:
    removed, edited = here.uninstall()
    if as_json:
        document({"removed": removed, "leftAlone": edited})
        return
    say("\n".join(f"removed {one_line(path)}" for path in removed) or "Nothing was installed.")
    for path in edited:
        note(f"! left unchanged, because it was edited: {one_line(path)}")


def _status(here: Installation, as_json: bool) -> None:
    if as_json:
        files = [{"path": place.path, "state": place.state} for place in here.places]
        document({"installed": here.is_there, "command": own_command(), "files": files})
        return
    say("\n".join(f"{place.state:<9} {one_line(place.path)}" for place in here.places))
    say(f"It starts {one_line(shell_words(own_command()))}")
    if any(place.state in (State.ABSENT, State.OUTDATED) for place in here.places):
        note("subdeck pi install installs what is missing or outdated.")
