"""What the three tools take and answer, as JSON Schema, and how they are told to a model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..models.thinking import LEVELS
from ..presets.catalog import Preset
from ..text.plain import one_line
from . import outputs
from .models import available_models
from .reading import refresh
from .registration import is_child

if TYPE_CHECKING:
    from ..engine import Engine

SUBAGENT = "subagent"
BACKGROUND = "background_agent"
STATUS = "background_agent_status"
NAMES = (SUBAGENT, BACKGROUND, STATUS)

PRESETS_LENGTH = 1500
"""Characters that the list of presets may take. With the words around it that is about 500 tokens, taking four
characters for a token; the limit is 600 for twenty presets."""

NAMES_LENGTH = 600
"""Characters that the bare names may take."""

LEAST_DESCRIPTION = 12
"""Characters below which a description is left out."""

ROLE_OR_THINKING = rf"^(@\S+|\S.*:({'|'.join(LEVELS)}))$"


class ToolSpec(Struct, frozen=True):
    name: str
    label: str
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any]


def tools_for(engine: Engine, models: Sequence[str] | None = None) -> tuple[ToolSpec, ...]:
    """Answer the tools a parent gets now; none without a model, and none for a child.

    `models` are those a parent tells, None where it tells none. Settings and presets are read again: raises
    SettingsError.
    """
    if is_child(os.environ):
        return ()
    settings = refresh(engine)
    available = available_models(settings, models)
    if not available:
        return ()
    isolated, announced = settings.expose_isolated, models is not None
    return specs(available, engine.presets().presets, isolated=isolated, announced=announced)


def described(tools: Sequence[ToolSpec]) -> str:
    """Answer a digest of what a parent is told besides the models: presets, and which fields there are."""
    told = [f"{tool.name}\n{tool.description}\n{sorted(tool.parameters['properties'])}" for tool in tools]
    return hashlib.sha256("\n".join(told).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def models_of(tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Answer the models that the tools name, in their order."""
    return tuple(tools[0].parameters["properties"]["model"]["anyOf"][0]["enum"]) if tools else ()


def specs(
    models: Sequence[str], presets: Sequence[Preset], *, isolated: bool, announced: bool = True
) -> tuple[ToolSpec, ...]:
    """Build the three tools.

    `isolated` tells whether the setting shows that field to parents, `announced` whether the door tells a parent of
    the end of a background run, which one that knows its models does.
    """
    task = _task_fields(models, isolated=isolated)
    single = _object(task, required=("preset", "task"))
    either = _object(
        {
            **task,
            "tasks": {
                "type": "array",
                "minItems": 1,
                "items": single,
                "description": "Parallel mode: each task names its own preset. Not together with preset and task.",
            },
        }
    )
    status = _object(
        {
            "runId": {"type": "string", "description": "Only this run, with its whole answer."},
            "includeCompleted": {"type": "boolean", "description": "Also the runs that have ended (default: false)."},
        }
    )
    foreground = (
        "Delegate work to child agents and wait for their answers. Give either preset and task (one child), or tasks: "
        "[{preset, task, …}, …] (several at the same time), never both. There is no chain mode: for steps that need "
        "each other call subagent again with the earlier answer in the next task. A child sees only its task, unless "
        f"told otherwise: be complete.\n{preset_list(presets)}"
    )
    background = (
        "Start one child agent that nobody waits for, and get its runId at once. "
        f"{'Its end is announced; ' if announced else ''}{STATUS} tells how it stands. Presets: {preset_names(presets)}"
    )
    polling = (
        "Tell how the background runs of this session stand: counts, and the active ones. With runId one run and its "
        "answer; with includeCompleted also those that have ended."
    )
    return (
        ToolSpec(SUBAGENT, "Subagent", foreground, either, outputs.SUBAGENT),
        ToolSpec(BACKGROUND, "Background agent", background, single, outputs.BACKGROUND),
        ToolSpec(STATUS, "Background agent status", polling, status, outputs.STATUS),
    )


def preset_list(presets: Sequence[Preset]) -> str:
    """List names and descriptions, shortened so that all of it stays within `PRESETS_LENGTH`."""
    if not presets:
        return "There are no presets yet: write one as .pi/subagents/NAME.md."
    share = PRESETS_LENGTH // len(presets) - 1
    return "Presets:\n" + _within((_line(preset, share) for preset in presets), "\n", PRESETS_LENGTH)


def preset_names(presets: Sequence[Preset]) -> str:
    return _within((preset.name for preset in presets), ", ", NAMES_LENGTH) or "none yet"


def _line(preset: Preset, limit: int) -> str:
    room = limit - len(preset.name) - 4
    description = one_line(preset.description, room) if room >= LEAST_DESCRIPTION else ""
    return f"- {preset.name}: {description}" if description else f"- {preset.name}"


def _within(parts: Any, separator: str, limit: int) -> str:
    """Join as many as fit, and say how many do not."""
    every = list(parts)
    kept = list(every)
    while kept and len(separator.join(kept)) > limit:
        kept.pop()
    rest = len(every) - len(kept)
    return separator.join([*kept, f"… and {rest} more"] if rest else kept)


def _task_fields(models: Sequence[str], *, isolated: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "preset": {"type": "string", "description": "Name of the preset that the child runs with."},
        "task": {"type": "string", "description": "What the child shall do, with all it needs to know."},
        "model": {
            "anyOf": [{"type": "string", "enum": list(models)}, {"type": "string", "pattern": ROLE_OR_THINKING}],
            "description": "Goes before the preset's model. Must be one of the currently available models, with or "
            "without a thinking level (provider/id:high), or a role (@fast).",
        },
        "cwd": {"type": "string", "description": "Directory the child works in (default: the parent's)."},
        "description": {"type": "string", "description": "Five to ten words for the list of runs."},
        "sessionId": {"type": "string", "description": "Go on with this child session of the same preset and cwd."},
    }
    if isolated:
        about = "true: the child does not see this conversation; false: it does."
        fields["isolated"] = {"type": "boolean", "description": about}
    return fields


def _object(properties: dict[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}
