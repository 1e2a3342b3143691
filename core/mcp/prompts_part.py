"""The presets as prompts: what a person picks from a client's menu becomes a call of the tool; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import mcp_types as types

from ..errors import UsageError
from ..presets.catalog import Preset, PresetCatalog
from ..text.plain import one_line

TASK = "task"


def prompts_of(presets: Iterable[Preset]) -> list[types.Prompt]:
    return [
        types.Prompt(
            name=preset.name,
            title=preset.name,
            description=one_line(preset.description, 200),
            arguments=[types.PromptArgument(name=TASK, description="what the subagent shall do", required=True)],
        )
        for preset in presets
    ]


def prompt_text(catalog: PresetCatalog, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Fill in a prompt. Raises PresetError for a name that is no preset's, UsageError for other arguments."""
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
