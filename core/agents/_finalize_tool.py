"""The tool by which a child hands over its result, as it is declared to an agent, and the server that has it."""

from __future__ import annotations

import sys
from typing import Any

from ..run.outcome import FINALIZE_TOOL

SERVER = "subdeck"
"""The name of the server among those of an agent."""

DESCRIPTION = "Return the result of your task. Call it as your final action, alone in its message."

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["SUCCESS", "ERROR"]},
        "result": {"type": "string", "description": "With SUCCESS: your whole answer."},
        "error": {"type": "string", "description": "With ERROR: the reason."},
    },
    "required": ["status"],
    "additionalProperties": False,
}

CLAUDE_NAME = f"mcp__{SERVER}__{FINALIZE_TOOL}"
"""As Claude Code calls it."""

NAMES = frozenset(
    {
        FINALIZE_TOOL,
        CLAUDE_NAME,
        f"mcp.{SERVER}.{FINALIZE_TOOL}",
        f"{SERVER}_{FINALIZE_TOOL}",
        f"{FINALIZE_TOOL} ({SERVER} MCP Server)",
    }
)
"""As agents call it that take it from the server, each its own way: Claude Code, Codex, opencode, Gemini."""


def server_command() -> tuple[str, ...]:
    """Return the program of the server (`finalize_server.py`) and its arguments."""
    return (sys.executable, "-P", "-E", "-m", "subdeck.core.agents.finalize_server")
