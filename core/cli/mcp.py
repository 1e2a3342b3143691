"""`subdeck mcp`: serve the four tools to clients of the Model Context Protocol."""

from __future__ import annotations

from ._command import command
from .tool_server import serve_client


@command(
    "mcp",
    "claude mcp add subdeck -- subdeck mcp # what subdeck connect claude does",
    "codex mcp add subdeck -- subdeck mcp",
    json_help="Print a startup error as JSON.",
)
def mcp() -> None:
    """Serve the delegation tools (subagent, background_agent and others) to Claude Code, Codex and other MCP clients.

    A client starts this command; subdeck connect adds it to the client's settings. The server works on the project in
    the current directory, as its own session, until its client disconnects. Background runs continue after that. Runs
    that a call is waiting for are cancelled.
    """
    serve_client()
