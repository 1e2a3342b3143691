"""`subdeck mcp`: the four tools for clients of the Model Context Protocol, and what makes these start it."""

from __future__ import annotations

import os

import click

from ..agent_kinds import KINDS
from ..errors import UsageError
from ._options import OneOf
from .output import note
from .tool_server import serve_client

CLIENTS = [kind.name for kind in KINDS.values() if kind.mcp_client]


@click.command("mcp")
@click.argument("action", type=OneOf(["serve", "install", "uninstall"]), default="serve")
@click.argument("client", type=OneOf(CLIENTS), required=False)
@click.option("--project", is_flag=True, help="Install for this project only instead of all your projects.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON. For a server, only a startup error is printed.")
def mcp(action: str, client: str | None, project: bool, as_json: bool) -> None:
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
    elif client is None:
        raise UsageError(
            f"{action}: no client given", where="subdeck mcp", hint=f"subdeck mcp {action} {', or '.join(CLIENTS)}"
        )
    else:
        _set_up(action, client, project, as_json)


def _set_up(action: str, name: str, project: bool, as_json: bool) -> None:
    from .. import trust
    from ..mcp import clients
    from ..text.plain import one_line
    from .output import document, say

    root = None
    if project:
        found = trust.find_project(os.getcwd())
        trust.check(found)
        root = found.root
    client = clients.client(name, project=root)
    change = client.install() if action == "install" else client.uninstall()
    if as_json:
        document({"path": change.path, "entry": change.entry, "changed": change.changed})
        return
    where = one_line(change.path)
    if action == "uninstall":
        say(f"Removed from {where}" if change.changed else f"subdeck was not in {where}")
        return
    say(f"{'Written to' if change.changed else 'Already installed:'} {where}")
    note(client.next_step)
