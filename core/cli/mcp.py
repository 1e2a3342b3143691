"""`subdeck mcp`: serve the four tools to clients of the Model Context Protocol, and add the server to them."""

from __future__ import annotations

import os
from typing import Any

import click

from ..agent_kinds import KINDS
from ..errors import UsageError
from ._command import Document, command
from ._options import OneOf
from .output import Note, Output
from .tool_server import serve_client

CLIENTS = [kind.name for kind in KINDS.values() if kind.mcp_client]


class ClientSettings(Document, frozen=True):
    """The client's settings file."""

    path: str
    entry: dict[str, Any] | None
    """The entry of this server; null if it is removed."""
    changed: bool
    """Whether the file was changed."""


@command(
    "mcp",
    "subdeck mcp install claude",
    "subdeck mcp install codex --project",
    "subdeck mcp uninstall claude",
    json_help="Print JSON. For a server, only a startup error is printed.",
)
@click.argument("action", type=OneOf(["serve", "install", "uninstall"]), default="serve")
@click.argument("client", type=OneOf(CLIENTS), required=False)
@click.option("--project", is_flag=True, help="Install for this project only instead of all your projects.")
def mcp(action: str, client: str | None, project: bool) -> Output[ClientSettings] | None:
    """Serve the delegation tools (subagent, background_agent and others) to Claude Code, Codex and other MCP clients.

    The server works on the project in the current directory, as its own session, until its client disconnects.
    Background runs continue after that. Runs that a call is waiting for are cancelled.

    `install claude` and `install codex` add this server to the client's own settings file and print its path.
    `uninstall` removes exactly that entry. Everything else in the file stays unchanged.
    """
    if action == "serve":
        if client is not None or project:
            raise UsageError(
                "the server itself takes no client name", where="subdeck mcp", hint="subdeck mcp install CLIENT"
            )
        serve_client()
        return None
    if client is None:
        raise UsageError(
            f"{action}: no client given", where="subdeck mcp", hint=f"subdeck mcp {action} {', or '.join(CLIENTS)}"
        )
    return _set_up(action, client, project)


def _set_up(action: str, name: str, project: bool) -> Output[ClientSettings]:
    from .. import trust
    from ..mcp import clients
    from ..text.plain import one_line

    root = None
    if project:
        found = trust.find_project(os.getcwd())
        trust.check(found)
        root = found.root
    client = clients.client(name, project=root)
    change = client.install() if action == "install" else client.uninstall()
    document = ClientSettings(change.path, change.entry, change.changed)
    where = one_line(change.path)
    if action == "uninstall":
        return Output(document, f"Removed from {where}" if change.changed else f"subdeck was not in {where}")
    said = f"{'Written to' if change.changed else 'Already installed:'} {where}"
    return Output(document, (said, Note(client.next_step)))
