"""`subdeck connect` and `disconnect`: let pi, Claude Code and Codex call the delegation tools, or no longer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from .. import trust
from ..agent_kinds import KINDS
from ..errors import SubdeckError
from ..paths import agent_dir
from ..pi_parent.installer import Installation, State, installation, own_command
from ..text.plain import one_line
from ..text.shell import shell_words
from ._command import Document, command
from ._options import OneOf
from .output import Note, Output, Piece

PI = "pi"
CLIENTS = [PI, *(kind.name for kind in KINDS.values() if kind.mcp_client)]

project_option = click.option("--project", is_flag=True, help="For this project only instead of all your projects.")


class PiFile(Document, frozen=True):
    path: str
    state: State


class PiStatus(Document, frozen=True):
    """Without a client: the files in pi."""

    installed: bool
    command: tuple[str, ...]
    """The program that the extension starts."""
    files: tuple[PiFile, ...]


class PiInstalled(Document, frozen=True):
    """With pi."""

    extension: str
    """Path of the extension."""
    prompts: tuple[str, ...]
    """Paths of the prompt templates."""
    left_alone: tuple[str, ...]
    """Paths of files that subdeck did not create, or that were edited."""
    command: tuple[str, ...]


class PiRemoved(Document, frozen=True):
    """With pi."""

    removed: tuple[str, ...]
    left_alone: tuple[str, ...]


class ClientSettings(Document, frozen=True):
    """With an MCP client: its settings file."""

    path: str
    entry: dict[str, Any] | None
    """The entry of this server; null if it is removed."""
    changed: bool
    """Whether the file was changed."""


@command(
    "connect",
    "subdeck connect pi",
    "subdeck connect claude --project",
    "subdeck connect # what is installed in pi",
)
@click.argument("client", type=OneOf(CLIENTS), required=False)
@project_option
def connect(client: str | None, project: bool) -> Output[PiStatus | PiInstalled | ClientSettings]:
    """Let an agent program start runs: add subagent, background_agent, background_agent_status and
    background_agent_send to its tools.

    For pi, write one extension and five prompt templates, and print their paths. Files that subdeck did not create, or
    that were edited, stay unchanged. For Claude Code and Codex, add subdeck mcp to the client's own settings file, and
    print its path. Everything else in the file stays unchanged.

    Without CLIENT, show what is installed in pi. subdeck disconnect removes exactly what was added.
    """
    if client is None:
        return _status_of_pi(_installation(project), project)
    return _install_pi(_installation(project), project) if client == PI else _set_up(client, project, adds=True)


@command("disconnect", "subdeck disconnect pi", "subdeck disconnect claude --project")
@click.argument("client", type=OneOf(CLIENTS))
@project_option
def disconnect(client: str, project: bool) -> Output[PiRemoved | ClientSettings]:
    """Remove what subdeck connect added to an agent program.

    Files in pi that were edited, and everything else in the settings of Claude Code and Codex, stay unchanged.
    """
    return _uninstall_pi(_installation(project)) if client == PI else _set_up(client, project, adds=False)


# --- pi --------------------------------------------------------------------------------------------------------------


def _installation(project: bool) -> Installation:
    return installation(
        os.path.join(trust.own_project(os.getcwd()).root, ".pi") if project else os.path.abspath(agent_dir())
    )


def _install_pi(here: Installation, project: bool) -> Output[PiInstalled]:
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


def _uninstall_pi(here: Installation) -> Output[PiRemoved]:
    removed, edited = here.uninstall()
    text = (
        "\n".join(f"removed {one_line(path)}" for path in removed) or "Nothing was installed.",
        *(Note(f"! left unchanged, because it was edited: {one_line(path)}") for path in edited),
    )
    return Output(PiRemoved(removed, edited), text)


def _status_of_pi(here: Installation, project: bool) -> Output[PiStatus]:
    files = tuple(PiFile(file.path, file.state) for file in here.files)

    def text() -> Iterator[Piece]:
        yield [f"{file.state:<9} {one_line(file.path)}" for file in files]
        yield f"It starts {one_line(shell_words(own_command()))}"
        if any(file.state in (State.ABSENT, State.OUTDATED) for file in files):
            yield Note("subdeck connect pi installs what is missing or outdated.")
        if project and here.is_there:
            yield from _trust_note()

    return Output(PiStatus(here.is_there, own_command(), files), text())


# --- clients of the Model Context Protocol ---------------------------------------------------------------------------


def _set_up(name: str, project: bool, *, adds: bool) -> Output[ClientSettings]:
    """Add the server's entry to a client's settings, or remove it."""
    from ..mcp import clients

    client = clients.client(name, project=trust.own_project(os.getcwd()).root if project else None)
    change = client.install() if adds else client.uninstall()
    document = ClientSettings(change.path, change.entry, change.changed)
    where = one_line(change.path)
    if not adds:
        return Output(document, f"Removed from {where}" if change.changed else f"subdeck was not in {where}")
    message = f"{'Written to' if change.changed else 'Already installed:'} {where}"
    return Output(document, (message, Note(client.next_step)))
