"""What the three tools take and answer, as JSON Schema, and how they are told to a model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..models.references import LEVELS
from ..presets.catalog import Preset
from ..text.plain import one_line
from .models import available_models

if TYPE_CHECKING:
    from ..engine import Engine

_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
_NUMBER: dict[str, Any] = {"type": "integer"}
_NUMBER_OR_NULL: dict[str, Any] = {"type": ["integer", "null"]}
_STATUS: dict[str, Any] = {"type": "string", "enum": ["queued", "running", "completed", "failed", "aborted"]}
_PATHS: dict[str, Any] = {"type": "object", "additionalProperties": _TEXT}

_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "what": _TEXT,
        "field": _TEXT,
        "value": _TEXT,
        "valid": {"type": "array", "items": _TEXT},
        "where": _TEXT,
        "hint": _TEXT,
        "index": _NUMBER,
    },
    "required": ["what", "value", "valid", "where", "hint"],
}

_COUNTS: dict[str, Any] = {
    "type": "object",
    "properties": dict.fromkeys(("running", "completed", "failed", "aborted", "total", "queued"), _NUMBER),
    "required": ["running", "completed", "failed", "aborted", "total"],
}

_RUN: dict[str, Any] = {
    "runId": _TEXT,
    "preset": _TEXT,
    "description": _TEXT,
    "task": _TEXT,
    "cwd": _TEXT,
    "requestedModel": _TEXT,
    "resolvedModel": _TEXT,
    "createdAt": _TEXT,
    "startedAt": _TEXT_OR_NULL,
    "endedAt": _TEXT_OR_NULL,
    "status": _STATUS,
    "reason": _TEXT_OR_NULL,
    "sessionId": _TEXT_OR_NULL,
    "runDir": _TEXT,
    "artifacts": _PATHS,
}

_ENDED: dict[str, Any] = {
    "answer": _TEXT_OR_NULL,
    "error": _TEXT_OR_NULL,
    "exitCode": _NUMBER_OR_NULL,
    "stopReason": _TEXT_OR_NULL,
    "durationMs": _NUMBER_OR_NULL,
    "usage": {"type": "object"},
    "finalized": {"type": "object", "additionalProperties": _TEXT},
}


def _answer(properties: dict[str, Any]) -> dict[str, Any]:
    errors = {"error": _ERROR, "errors": {"type": "array", "items": _ERROR}}
    return {"type": "object", "properties": {**properties, **errors}}


def _rows(properties: dict[str, Any]) -> dict[str, Any]:
    row = {"type": "object", "properties": properties, "required": ["runId", "preset", "status"]}
    return {"type": "array", "items": row}


SUBAGENT_OUTPUTS = _answer(
    {
        "mode": {"type": "string", "enum": ["single", "parallel"]},
        "completed": _NUMBER,
        "runs": _rows({"index": _NUMBER, **_RUN, **_ENDED}),
    }
)
BACKGROUND_OUTPUTS = _answer({**_RUN, "counts": _COUNTS})
STATUS_OUTPUTS = _answer({"counts": _COUNTS, "runs": _rows({**_RUN, "activity": _TEXT, **_ENDED}), "omitted": _NUMBER})


CHILD = "PI_SUBAGENTS_CHILD"
"""`1` in the environment of every child: it never delegates."""


def is_child(environment: Mapping[str, str]) -> bool:
    return environment.get(CHILD) == "1"


def registration_key(models: Sequence[str], described: str = "") -> str:
    """Return what tells one registration from another: the set of models, in whatever order and case.

    `described` stands for the rest that a parent is told (`schema.described`). Nothing given is changed.
    """
    lowered = sorted({model.lower() for model in models})
    return hashlib.sha256("\n".join((*lowered, "", described)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def should_register(
    key_before: str | None, models: Sequence[str], environment: Mapping[str, str], described: str = ""
) -> bool:
    """Tell whether to register now; `key_before` is that of the last registration, None before the first."""
    if is_child(environment) or not models:
        return False
    return registration_key(models, described) != key_before


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
    """Return the tools a parent gets now; none without a model, and none for a child.

    `models` are those a parent tells, None where it tells none. Settings and presets are read again: raises
    SettingsError.
    """
    if is_child(os.environ):
        return ()
    settings = engine.read_settings()
    available = available_models(settings, models)
    if not available:
        return ()
    isolated, announced = settings.expose_isolated, models is not None
    return specs(available, engine.presets().presets, isolated=isolated, announced=announced)


def described(tools: Sequence[ToolSpec]) -> str:
    """Return a digest of what a parent is told besides the models: presets, and which fields there are."""
    told = [f"{tool.name}\n{tool.description}\n{sorted(tool.parameters['properties'])}" for tool in tools]
    return hashlib.sha256("\n".join(told).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def models_of(tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Return the models that the tools name, in their order."""
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
        ToolSpec(SUBAGENT, "Subagent", foreground, either, SUBAGENT_OUTPUTS),
        ToolSpec(BACKGROUND, "Background agent", background, single, BACKGROUND_OUTPUTS),
        ToolSpec(STATUS, "Background agent status", polling, status, STATUS_OUTPUTS),
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
