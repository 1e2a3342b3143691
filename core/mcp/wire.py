"""What the tools say, in the types of the protocol; pure."""

from __future__ import annotations

import mcp_types as types

from ..delegation.answers import ToolAnswer
from ..delegation.schema import STATUS, ToolSpec
from ..text.plain import plain

ALWAYS_LOAD = {"anthropic/alwaysLoad": True}
"""Claude Code keeps the description of a tool without it out of the conversation until the model searches for it."""


def tool_of(spec: ToolSpec) -> types.Tool:
    """Describe a tool; the one that only looks is left to the search, and says that it changes nothing."""
    only_looks = spec.name == STATUS
    return types.Tool(
        name=spec.name,
        title=spec.label,
        description=spec.description,
        input_schema=spec.parameters,
        output_schema=spec.output,
        annotations=types.ToolAnnotations(read_only_hint=only_looks, idempotent_hint=only_looks),
        _meta=None if only_looks else dict(ALWAYS_LOAD),
    )


def result_of(answer: ToolAnswer) -> types.CallToolResult:
    """Put an answer into text for people and structured content for the model, which Claude Code and Codex show it."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=plain(answer.text))],
        structured_content=answer.structured,
        is_error=answer.is_error,
    )
