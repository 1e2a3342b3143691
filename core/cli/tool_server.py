"""What `subdeck mcp` is while it serves, without what reads options: its client waits for it."""

from __future__ import annotations

import fcntl
import os
import sys

from ..errors import UsageError
from ..mcp.server import open_engine, serve
from ..system.log import log_thread_faults
from ._stdio import Canceller
from .output import note, run_to_end

FOR_PEOPLE = (
    "subdeck mcp serves programs, with JSON-RPC on stdin and stdout. To add it to Claude "
    "Code or Codex, run\n  subdeck connect claude     (or: claude mcp add subdeck -- "
    "subdeck mcp)\n  subdeck connect codex\nWaiting for a client. Press ctrl-D to stop."
)


def main() -> int:
    """Do what `subdeck mcp` does; return the exit code."""
    return run_to_end(serve_client)


def serve_client() -> None:
    """Serve the client at stdin and stdout until it goes. Raises UsageError where there is none."""
    if not sys.stdin or not sys.stdout:
        raise UsageError("stdin or stdout is closed", where="subdeck mcp", hint="an MCP client opens both")
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
