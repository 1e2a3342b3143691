"""The four tools as a parent registers them: names, descriptions, JSON Schemas, and the available models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from ..agents.choice import choose_agent, offers, own_listings
from ..config.settings import Settings
from ..engine import Engine
from ..errors import AgentUnavailable
from ..models.catalog import LEVELS, settings_listing
from ..paths import hex_digest, is_child
from ..presets.catalog import Preset
from ..run.model import RunStatus
from ..run.snapshot import Counts
from ..text.plain import one_line, plain
from ._arguments import OF_SPEC

Schema = dict[str, Any]

SUBAGENT = "subagent"
BACKGROUND = "background_agent"
STATUS = "background_agent_status"
SEND = "background_agent_send"
NAMES = (SUBAGENT, BACKGROUND, STATUS, SEND)

PRESETS_LENGTH = 1500
"""Maximum characters of the list of presets. With the sentences around it that is about 500 tokens, at four characters
per token; the limit is 600 for twenty presets.
"""

NAMES_LENGTH = 600
"""Maximum characters of the list of names."""

LEAST_DESCRIPTION = 12
"""Room for a description below which it is omitted."""

ROLE_OR_THINKING = rf"^(@\S+|\S.*:({'|'.join(LEVELS)}))$"

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_NUMBER: Schema = {"type": "integer"}
_TYPES: dict[str, Schema] = {
    "amounts": {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}}
}
"""Schemas of argument types that JSON Schema does not name."""
_NUMBER_OR_NULL: Schema = {"type": ["integer", "null"]}


class ToolSpec(Struct, frozen=True):
    name: str
    label: str
    description: str
    parameters: Schema
    output: Schema


def tools_for(engine: Engine, models: Sequence[str] | None = None) -> tuple[ToolSpec, ...]:
    """Return a parent's current tools; none without a model, and none inside a subagent.

    `models` are the parent's announced models, None if it announces none. Settings and presets are read again: raises
    SettingsError.
    """
    if is_child():
        return ()
    settings = engine.read_settings()
    available = available_models(settings, models)
    if not available:
        return ()
    isolated, announces_ends = settings.expose_isolated, models is not None
    hosts = names_hosts(settings)
    return specs(available, engine.presets().presets, isolated=isolated, announces_ends=announces_ends, hosts=hosts)


def names_hosts(settings: Settings) -> bool:
    """Whether calls may name hosts, because the user has configured some."""
    return settings.hosts.is_set


def specs(
    models: Sequence[str],
    presets: Sequence[Preset],
    *,
    isolated: bool,
    announces_ends: bool = True,
    hosts: bool = False,
) -> tuple[ToolSpec, ...]:
    """Build the four tools.

    `isolated`: parents see that field. `announces_ends`: the parent announces its models, and is notified when a
    background run ends. `hosts`: parents may name hosts.
    """
    task = _task_fields(models, isolated=isolated, hosts=hosts)
    single = _object(task, required=("preset", "task"))
    tasks = {
        "type": "array",
        "minItems": 1,
        "items": single,
        "description": "Parallel mode: each task names its own preset. Cannot be combined with preset and task.",
    }
    status = {
        "runId": {**_TEXT, "description": "Only this run, with its full answer."},
        "includeCompleted": {"type": "boolean", "description": "Also list finished runs (default: false)."},
    }
    send_fields = {
        "runId": {**_TEXT, "description": "The run, as background_agent returned it."},
        "message": {**_TEXT, "description": "Message to the agent."},
        "interrupt": {"type": "boolean", "description": "End its current turn first (default: false)."},
    }
    foreground = (
        "Delegate work to subagents and wait for their answers. Use either preset and task (one "
        "subagent), or tasks: [{preset, task, …}, …] (several in parallel), never both. Chaining "
        "is not supported: for dependent steps, call subagent again and put the earlier answer "
        "into the next task. A subagent sees only its task unless you choose otherwise, so write "
        f"complete tasks.\n{_preset_list(presets)}"
    )
    names = _within((preset.name for preset in presets), ", ", NAMES_LENGTH) or "none yet"
    background = (
        "Start one subagent in the background and return its runId at once. "
        f"{'You are notified when it finishes; ' if announces_ends else ''}{STATUS} shows its "
        f"status. Presets: {names}"
    )
    polling = (
        "Show this session's background runs: counts and active runs. With runId, show one run "
        "and its answer. With includeCompleted, also show finished runs."
    )
    sending = (
        "Send a message to one of this session's background runs while it works. With interrupt, "
        "its current turn ends first; without a message, it then waits for one. Only the user "
        f"can answer a run's requests (requests in {STATUS})."
    )
    return (
        ToolSpec(SUBAGENT, "Subagent", foreground, _object({**task, "tasks": tasks}), SUBAGENT_OUTPUT),
        ToolSpec(BACKGROUND, "Background agent", background, single, BACKGROUND_OUTPUT),
        ToolSpec(STATUS, "Background agent status", polling, _object(status), STATUS_OUTPUT),
        ToolSpec(SEND, "Background agent send", sending, _object(send_fields, required=("runId",)), SEND_OUTPUT),
    )


def _preset_list(presets: Sequence[Preset]) -> str:
    if not presets:
        return "No presets yet: write one to .pi/subagents/NAME.md."
    share = PRESETS_LENGTH // len(presets) - 1
    return "Presets:\n" + _within((_line(preset, share) for preset in presets), "\n", PRESETS_LENGTH)


def _line(preset: Preset, limit: int) -> str:
    room = limit - len(preset.name) - 4
    description = one_line(preset.description, room) if room >= LEAST_DESCRIPTION else ""
    return f"- {preset.name}: {description}" if description else f"- {preset.name}"


def _within(parts: Iterable[str], separator: str, limit: int) -> str:
    kept, dropped = list(parts), 0
    while kept and len(separator.join(kept)) > limit:
        kept.pop()
        dropped += 1
    return separator.join([*kept, f"… and {dropped} more"] if dropped else kept)


def _task_fields(models: Sequence[str], *, isolated: bool, hosts: bool) -> Schema:
    fields: Schema = {
        "preset": {**_TEXT, "description": "Name of the subagent's preset."},
        "task": {**_TEXT, "description": "What the subagent should do, with everything it needs to know."},
        "cwd": {**_TEXT, "description": "Working directory of the subagent (default: yours)."},
        "description": {**_TEXT, "description": "Five to ten words for the list of runs."},
        "sessionId": {**_TEXT, "description": "Continue this agent session of the same preset and cwd."},
    }
    for name, (_, argument) in OF_SPEC.items():
        if hosts or not argument.is_of_hosts:
            fields[name] = {**_TYPES.get(argument.type, {"type": argument.type}), "description": argument.meaning}
    fields["model"] |= {"anyOf": [{**_TEXT, "enum": list(models)}, {**_TEXT, "pattern": ROLE_OR_THINKING}]}
    del fields["model"]["type"]
    if isolated:
        description = "true: the subagent does not see this conversation; false: it does."
        fields["isolated"] = {"type": "boolean", "description": description}
    return fields


def _object(properties: Schema, required: Sequence[str] = ()) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def lenient(parameters: Schema) -> Schema:
    """Return the parameters for a parent that validates calls itself, with its own error messages: unknown fields and
    models pass, so that subdeck reports the errors.
    """
    properties = {name: _lenient_field(name, field) for name, field in parameters["properties"].items()}
    return {**parameters, "properties": properties, "additionalProperties": True}


def _lenient_field(name: str, field: Schema) -> Schema:
    if name == "model":
        return {**field, "anyOf": [field["anyOf"][0], _TEXT]}
    return {**field, "items": lenient(field["items"])} if name == "tasks" else field


_RUN: Schema = {
    "runId": _TEXT,
    **dict.fromkeys(("preset", "description", "cwd"), _TEXT),
    "worktree": {"type": "object", "properties": {"branch": _TEXT}, "description": "The changes are there, in cwd."},
    "resolvedModel": _TEXT_OR_NULL,
    **dict.fromkeys(("sessionId", "toolsLeftOut", "host"), _TEXT_OR_NULL),
    "reason": {
        **_TEXT_OR_NULL,
        "description": "Why the run ended. unverified: the agent cannot report errors, so check the answer. "
        "denied: a permission request was denied or not answered.",
    },
    "status": {**_TEXT, "enum": [status.value for status in RunStatus]},
}

_END: Schema = {
    **dict.fromkeys(("answer", "error"), _TEXT_OR_NULL),
    "durationMs": _NUMBER_OR_NULL,
    "usage": {"type": "object"},
    "finalized": {"type": "object", "additionalProperties": _TEXT},
    "branch": _TEXT,
    "partial": {"type": "boolean"},
    "check": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("name", "output", "note"), _TEXT),
            **dict.fromkeys(("exitCode", "seconds"), _NUMBER_OR_NULL),
            "passed": {"type": "boolean"},
        },
    },
    "changes": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("files", "added", "removed"), _NUMBER),
            **dict.fromkeys(("source", "shared", "note"), _TEXT),
            "named": {"type": "array", "items": {"type": "object"}},
        },
    },
}

_COUNTS: Schema = {
    "type": "object",
    "properties": dict.fromkeys(Counts.__struct_encode_fields__, _NUMBER),
    "required": [name for name in Counts.__struct_encode_fields__ if name not in ("queued", "waiting", "outOfReach")],
}

_ERROR: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("what", "field", "value", "where", "hint"), _TEXT),
        "valid": {"type": "array", "items": _TEXT},
        "index": _NUMBER,
    },
    "required": ["what"],
}


def _output(properties: Schema) -> Schema:
    """Return the schema of a result; `error` is the call's, or the reason why the run of a handle failed."""
    error = {"anyOf": [_ERROR, properties["error"]]} if "error" in properties else _ERROR
    errors = {"error": error, "errors": {"type": "array", "items": _ERROR}}
    return {"type": "object", "properties": {**properties, **errors}}


def _rows(properties: Schema, required: Iterable[str] = ()) -> Schema:
    row = {"type": "object", "properties": properties, "required": ["runId", "preset", "status", *required]}
    return {"type": "array", "items": row}


SUBAGENT_OUTPUT = _output(
    {
        "mode": {**_TEXT, "enum": ["single", "parallel"]},
        "completed": _NUMBER,
        "runs": _rows({"index": _NUMBER, **_RUN, **_END}),
    }
)
_FACTS: Schema = {
    **dict.fromkeys(("task", "createdAt", "runDir"), _TEXT),
    **dict.fromkeys(("requestedModel", "startedAt", "endedAt"), _TEXT_OR_NULL),
}
_NAMES: Schema = {"type": ["array", "null"], "items": _TEXT, "description": "Names of files in runDir."}
_ARTIFACTS: Schema = {"artifacts": _NAMES}
BACKGROUND_OUTPUT = _output({**_RUN, **_FACTS, **_ARTIFACTS, **_END, "counts": _COUNTS})
_LIVE: Schema = {
    "activity": _TEXT,
    "requests": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                **dict.fromkeys(("id", "kind", "asks", "display"), _TEXT),
                **dict.fromkeys(("toolName", "command", "directory", "text", "diff"), _TEXT),
                **{name: {"type": "array", "items": _TEXT} for name in ("paths", "choices")},
                "missing": _NUMBER,
                "marked": {"type": "boolean"},
            },
        },
    },
}
_STATUS_ROW: Schema = {**_RUN, **_FACTS, **_ARTIFACTS, **_LIVE, **_END}
STATUS_OUTPUT = _output(
    {
        "counts": _COUNTS,
        "root": {**_TEXT, "description": "In a list of runs, cwd and runDir are relative to this directory."},
        "runs": _rows(_STATUS_ROW, required=("cwd", "resolvedModel", *_FACTS)),
        "omitted": _NUMBER,
    }
)
SEND_OUTPUT = _output({**_RUN, **_LIVE, **_END, "delivery": _TEXT, "why": _TEXT, "counts": _COUNTS})


def registration_key(tools: Sequence[ToolSpec]) -> str:
    """Return a key that identifies a registration; models count as a set, ignoring order and case."""
    models = sorted({model.lower() for model in models_of(tools)})
    tool_texts = [f"{tool.name}\n{tool.description}\n{sorted(tool.parameters['properties'])}" for tool in tools]
    return hex_digest("\n".join((*models, "", *tool_texts)).encode("utf-8", "surrogatepass"), 32)


def models_of(tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Return the models that the tools name, in order."""
    return tuple(tools[0].parameters["properties"]["model"]["anyOf"][0]["enum"]) if tools else ()


def available_models(settings: Settings, announced: Sequence[str] | None) -> tuple[str, ...]:
    """Return each available `provider/id` once: only the parent's announced models, in its order.

    Without an announcement (None), these are the models of the settings and of their agent. A model in pi's package
    without a key is not available. The offline agent's own model is included if there is no other.
    """
    first: dict[str, str] = {}
    for ref in _known_models(settings) if announced is None else announced:
        if ref.strip() and plain(ref) == ref:  # a ref with control characters can never be launched
            first.setdefault(ref.lower(), ref)  # ignores spellings that differ only in case
    return tuple(first.values())


def _known_models(settings: Settings) -> list[str]:
    try:
        agent = choose_agent(settings.agent, settings)
    except AgentUnavailable:
        return [model.ref for model in settings_listing(settings.models).models]
    named = settings_listing(model for model in settings.models if offers(agent, model))
    refs = [model.ref for listing in (named, *own_listings(agent)) for model in listing.models]
    return refs or ([agent.own_model] if agent.own_model else [])
