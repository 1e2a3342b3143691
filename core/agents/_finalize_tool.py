"""The structured result tool: its declaration for agents, and the server that provides it."""

from __future__ import annotations

import sys
from typing import Any

from ..run.outcome import FINALIZE_TOOL

SERVER = "subdeck"
"""The server's name in an agent's configuration."""

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
"""The tool's name in Claude Code."""

NAMES = frozenset(
    {
        FINALIZE_TOOL,
        CLAUDE_NAME,
        f"mcp.{SERVER}.{FINALIZE_TOOL}",
        f"{SERVER}_{FINALIZE_TOOL}",
        f"{FINALIZE_TOOL} ({SERVER} MCP Server)",
    }
)
"""The tool's names in agents that get it from the server: Claude Code, Codex, opencode, Gemini."""


def server_command() -> tuple[str, ...]:
    """Return the server's command (`finalize_server.py`) and its arguments."""
    return (sys.executable, "-P", "-E", "-m", "subdeck.core.agents.finalize_server")
