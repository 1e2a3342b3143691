"""`subdeck mcp`: the three tools for clients of the Model Context Protocol, over stdin and stdout."""

from __future__ import annotations

import fcntl
import os
import sys

import click

from ..errors import UsageError
from ..mcp.server import open_engine, serve
from ..system.log import log_thread_faults
from .output import note
from .stdio import Canceller

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
    if sys.stdin.isatty():
        open_engine(session)  # what is wrong here is said at once to a person, to a client when it asks for something
        note(FOR_PEOPLE)
    stdin, stdout = _own_streams()
    with Canceller(watched=(stdout,)) as canceller:
        serve(session, stdin, stdout, canceller)


def _own_streams() -> tuple[int, int]:
    """Move what is connected with the client to descriptors that nothing else reads or writes, and no child gets."""
    stdin, stdout = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return stdin, stdout
