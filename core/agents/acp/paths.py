"""How agents of the protocol read a path: each in a way of its own, and what of a project they start programs from."""

from __future__ import annotations

from ...permissions.path_readings import any_program

SETTINGS = (
    *(".gemini", ".qwen", ".opencode", "opencode.json", "opencode.jsonc", ".copilot"),
    *(".github/copilot", ".github/extensions", ".github/hooks", ".github/mcp.json", ".vscode/mcp.json"),
)

read_path = any_program
