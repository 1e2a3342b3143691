"""`subdeck mcp`: the three tools for clients of the Model Context Protocol, over stdin and stdout."""

from __future__ import annotations

import os
import sys

import click

from ..engine import Engine
from ..errors import UsageError
from ..run.model import LauncherKind
from ..system.log import log_thread_faults
from .output import note
from .stdio import Canceller

EXTRA = frozenset({"anyio", "mcp", "mcp_types", "pydantic"})
"""Packages that come with the extra of that name."""

FOR_PEOPLE = """\
subdeck mcp talks to programs, in JSON-RPC on stdin and stdout. To have Claude Code start it, type
  claude mcp add subdeck -- subdeck mcp
Waiting for a client; ctrl-D ends it."""


@click.command("mcp")
@click.option("--json", "as_json", is_flag=True, help="If it cannot start, print the error as JSON on stderr.")
def mcp(as_json: bool) -> None:
    """Serve subagent, background_agent and background_agent_status to Claude Code, Codex and other MCP clients.

    Works on the project of the current directory, as a session of its own, until its client disconnects. Background
    runs continue after that; runs that a call is waiting for are cancelled.
    """
    if not sys.stdin or not sys.stdout:
        raise UsageError("stdin or stdout is closed", where="subdeck mcp", hint="an MCP client starts it with both")
    log_thread_faults()
    session = f"mcp-{os.urandom(6).hex()}"
    engine = Engine.open(session=session, kind=LauncherKind.MCP)
    # A descriptor of its own: the server puts another file under number 1, so that nothing else writes to the client.
    with Canceller(watched=(os.dup(1),)) as canceller:
        try:
            from ..mcp.server import serve
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in EXTRA:
                raise
            raise UsageError(
                f"the package {error.name} is missing: it comes with the extra mcp",
                where="subdeck mcp",
                hint="pipx install 'subdeck[mcp]', or in a virtual environment pip install 'subdeck[mcp]'",
            ) from error
        if sys.stdin.isatty():
            note(FOR_PEOPLE)
        serve(engine, session, canceller.wait)
