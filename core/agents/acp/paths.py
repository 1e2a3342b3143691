"""How ACP agents resolve paths (each in its own way), and the project files from which they start programs."""

from __future__ import annotations

from ...permissions.path_readings import any_program

SETTINGS = (
    *(".gemini", ".qwen", ".opencode", "opencode.json", "opencode.jsonc", ".copilot"),
    *(".github/copilot", ".github/extensions", ".github/hooks", ".github/mcp.json", ".vscode/mcp.json"),
)

read_path = any_program
