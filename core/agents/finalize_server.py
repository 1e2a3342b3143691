"""An MCP server with one tool, by which an agent returns its structured result.

`python -P -E -m subdeck.core.agents.finalize_server`, started by agents that support MCP tools. The result itself is
read from the agent's stream; the server only checks that it is valid.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ..run.outcome import FINALIZE_TOOL, fault_of
from ._finalize_tool import DESCRIPTION, SCHEMA, SERVER
from ._json_lines import decode, mapping

VERSION = "2025-06-18"

TOOL = {
    "name": FINALIZE_TOOL,
    "description": DESCRIPTION,
    "inputSchema": SCHEMA,
    "annotations": {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
    "_meta": {"anthropic/alwaysLoad": True},
}
"""Read-only, so that Codex does not ask for permission; always loaded, for an agent that hides tools until it searches
for them.
"""


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request, None for a notification. Raises KeyError for an unknown method."""
    params = request.get("params")
    match request.get("method"):
        case "initialize":
            asked = mapping(params).get("protocolVersion")
            return {
                "protocolVersion": asked if isinstance(asked, str) else VERSION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": SERVER, "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            fault = fault_of(mapping(mapping(params).get("arguments")))
            text = f"Refused: {fault}. Call {FINALIZE_TOOL} again." if fault else "The result was received."
            return {"content": [{"type": "text", "text": text}], "isError": bool(fault)}
        case method if "id" in request:
            raise KeyError(method)
        case _:
            return None


def main() -> None:
    for line in sys.stdin.buffer:
        asked = decode(line)
        if asked is None:
            continue
        try:
            reply: dict[str, Any] = {"result": answer(asked)}
        except KeyError:
            reply = {"error": {"code": -32601, "message": "unknown method"}}
        if "id" in asked:
            response = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply})
            sys.stdout.write(f"{response}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
