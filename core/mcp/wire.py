"""Tools, results and presets in the types of the protocol; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import mcp_types as types

from ..delegation.results import CallResult
from ..delegation.schema import STATUS, ToolSpec
from ..errors import UsageError
from ..presets.catalog import Preset, PresetCatalog
from ..text.plain import one_line, plain

ALWAYS_LOAD = {"anthropic/alwaysLoad": True}
"""Claude Code keeps the description of a tool without it out of the conversation until the model searches for it."""


def protocol_tool(spec: ToolSpec) -> types.Tool:
    """Describe a tool; the one that only reads is marked so, and is not always loaded."""
    only_reads = spec.name == STATUS
    return types.Tool(
        name=spec.name,
        title=spec.label,
        description=spec.description,
        input_schema=spec.parameters,
        output_schema=spec.output,
        annotations=types.ToolAnnotations(read_only_hint=only_reads, idempotent_hint=only_reads),
        _meta=None if only_reads else dict(ALWAYS_LOAD),
    )


def protocol_result(result: CallResult) -> types.CallToolResult:
    """Return text for people and structured content, which is what Claude Code and Codex show to the model."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=plain(result.text))],
        structured_content=result.structured,
        is_error=result.is_error,
    )


TASK = "task"


def protocol_prompts(presets: Iterable[Preset]) -> list[types.Prompt]:
    return [
        types.Prompt(
            name=preset.name,
            title=preset.name,
            description=one_line(preset.description, 200),
            arguments=[types.PromptArgument(name=TASK, description="what the subagent should do", required=True)],
        )
        for preset in presets
    ]


def prompt_text(catalog: PresetCatalog, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Fill in a prompt. Raises PresetError for an unknown preset, UsageError for other arguments than the task."""
    preset = catalog.get(name)
    task = arguments.get(TASK, "").strip()
    if not task or set(arguments) != {TASK}:
        raise UsageError(f'the prompt "{one_line(name, 80)}" takes one argument: {TASK}', where="prompts/get")
    text = (
        f"Call the tool subagent with preset {one_line(preset.name)} for this task, "
        f"then tell me what it found or did:\n\n{task}"
    )
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=one_line(preset.description, 200), messages=[message])
