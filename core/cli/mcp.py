"""`subdeck mcp`: the four tools for clients of the Model Context Protocol, and what makes these start it."""

from __future__ import annotations

import os

import click

from ..errors import UsageError
from .options import OneOf
from .output import note
from .serving import serve_client

WHEN_READ = {
    ("claude", False): "Claude Code reads it at its next start.",
    ("codex", False): "Codex reads it at its next start. Its model may then start subagents without asking you.",
    (
        "claude",
        True,
    ): "Claude Code asks once whether the server of the project may be started. It is found by its name: "
    "everybody who works here needs subdeck on PATH.",
    (
        "codex",
        True,
    ): "Codex reads it in a project that you trust. Its model may then start subagents without asking you. "
    "The server is found by its name: everybody who works here needs subdeck on PATH.",
}


@click.command("mcp")
@click.argument("action", type=OneOf(["serve", "install", "uninstall"]), default="serve")
@click.argument("client", type=OneOf(["claude", "codex"]), required=False)
@click.option("--project", is_flag=True, help="Install for this project only, instead of for all your projects.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; of a server only the error that keeps it from starting."
)
def mcp(action: str, client: str | None, project: bool, as_json: bool) -> None:
    """Serve subagent, background_agent and what goes with them to Claude Code, Codex and other MCP clients.

    Works on the project of the current directory, as a session of its own, until its client disconnects. Background
    runs continue after that; runs that a call is waiting for are cancelled.

    `install claude` and `install codex` write into the client's own file how it starts this server, and print where;
    `uninstall` takes exactly that away. Everything else in that file stays as it is.
    """
    if action == "serve":
        if client is not None or project:
            raise UsageError(
                "a server is started for any client", where="subdeck mcp", hint="subdeck mcp install CLIENT"
            )
        serve_client()
    elif client is None:
        raise UsageError(f"{action}: which client?", where="subdeck mcp", hint=f"subdeck mcp {action} claude, or codex")
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
    say(f"{'Written to' if change.changed else 'Already there:'} {where}")
    note(WHEN_READ[name, project])
