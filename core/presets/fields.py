"""Every key of a preset's frontmatter: what its value must look like, and what it does."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from ..agent_kinds import KINDS
from ..config.host_settings import HostName, Needs
from ..config.settings import AgentName, PermissionSettings
from ..config.values import Begins, Count, Dollars, Duration, Name, Rules, Spelling, Switch, Verbatim, Words, schema_of
from ..models.catalog import LEVELS
from ..run.model import PromptMode, RunnerKind


class PresetField(Struct, frozen=True):
    kind: Any
    """The type of its values, as `read_value` takes it."""
    meaning: str
    """For the author of a preset; also shown by editors."""


TOOLS = Annotated[
    str,
    Spelling(
        "a list of tools",
        schema={
            "anyOf": [
                {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:-]*$"}},
                {"type": "string", "minLength": 1},
            ]
        },
    ),
]
"""Read by `read_tools`, because the keys of tools are looked at together."""

PERMISSIONS = Annotated[
    PermissionSettings,
    Spelling(
        'lists of rules below "allow:", "ask:" and "deny:"',
        dict,
        {
            "type": "object",
            "properties": {name: schema_of(Rules) for name in PermissionSettings.__struct_fields__},
            "additionalProperties": False,
        },
    ),
]

ALLOWING = ("tools", "approved_tools", "allowed_tools")
"""One thing under three names."""
DENYING = "denied_tools"

_SAME = 'The same as "tools".'

FIELDS: dict[str, PresetField] = {
    "name": PresetField(Words, "Name of the preset."),
    "description": PresetField(Words, "One sentence: what the preset is for and when to choose it."),
    "model": PresetField(
        Words,
        'provider/id, provider/id:thinking, a bare id, a role in quotes ("@fast"), or inherit '
        "(the parent's model, or the agent's default without a parent). A call can override it.",
    ),
    "thinking": PresetField(
        Literal[LEVELS], "How hard the model thinks. A suffix of the model, such as :high, overrides it."
    ),
    "tools": PresetField(
        TOOLS,
        "The only tools that the agent may use, built in or from extensions; [] for none. "
        "Default: the agent's own set.",
    ),
    "approved_tools": PresetField(TOOLS, _SAME),
    "allowed_tools": PresetField(TOOLS, _SAME),
    "denied_tools": PresetField(
        TOOLS,
        "Tools that the agent may not use. It gets all other active tools of its parent, or all "
        "that the agent provides. Cannot be combined with tools.",
    ),
    "permissions": PresetField(
        PERMISSIONS,
        "Rules for what the agent may do without asking (allow), must ask for (ask) and must not "
        "do (deny), such as bash(git *), edit(src/**) or read. They add to the rules in the "
        "settings.",
    ),
    "interactive": PresetField(
        Switch,
        "Accept messages and ask questions while running, if the agent can. false: "
        "non-interactive. No messages in, no questions out.",
    ),
    "reply_timeout": PresetField(
        Duration,
        "How long a permission request or question waits for a reply before it is denied. Overrides the setting.",
    ),
    "idle_timeout": PresetField(
        Duration,
        "How long an interrupted agent waits for your message. After that its run ends. Overrides the setting.",
    ),
    "prompt": PresetField(Verbatim, "System prompt, used instead of the text below the frontmatter."),
    "prompt_mode": PresetField(PromptMode, "Append the prompt to the agent's own system prompt, or replace it."),
    "context_files": PresetField(
        Switch,
        "Whether the agent reads AGENTS.md and similar files. Default: true, or false with prompt_mode: replace.",
    ),
    "project_resources": PresetField(
        Switch,
        "false: the agent loads none of the project's extensions, servers, skills or settings, only context files.",
    ),
    "inherit_context": PresetField(
        Switch, "Pass the parent's conversation to the agent before the task. Overrides the setting."
    ),
    "structured_result": PresetField(
        Switch, "Require a structured result, returned through the tool subagent_finalize."
    ),
    "max_attempts": PresetField(Count, "Maximum number of attempts to get a structured result."),
    "sticky": PresetField(Switch, "Continue the same agent session in every run of this preset and directory."),
    "session": PresetField(Literal["none"], "none: the agent's session is never saved and cannot be continued."),
    "check": PresetField(
        Name, "Name of a check from your settings, run in the run's directory after the agent finishes."
    ),
    "agent": PresetField(AgentName, f"auto, {', '.join(KINDS)}, or an agent from your settings."),
    "runner": PresetField(
        RunnerKind, "How to run the agent: process (detached), tmux (in a tmux window) or hosts (on another machine)."
    ),
    "host": PresetField(HostName, "With runner: hosts, the only host to run on."),
    "requires": PresetField(Needs, "With runner: hosts, the resources that its host must have, such as {gpu: 1}."),
    "worktree": PresetField(
        Begins,
        "Work in a separate git worktree: true or files (from your current files, uncommitted "
        "changes included), head (from the last commit) or false.",
    ),
    "timeout": PresetField(Duration, "Stop the run after this time: seconds, or 90s, 10m, 2h."),
    "max_turns": PresetField(Count, "Stop the run after this many model turns."),
    "budget": PresetField(Dollars, "Stop the run after it has spent this many dollars."),
    "max_tokens": PresetField(Count, "Stop the run after it has used this many tokens, cache tokens included."),
    "stall": PresetField(Duration, "Stop the run if the agent is idle for this long while no tool is running."),
}


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def preset_schema() -> dict[str, Any]:
    """Return the schema, made from the table that the presets are read by."""
    exclusive = [*ALLOWING, DENYING]
    pairs = [{"required": [first, second]} for at, first in enumerate(exclusive) for second in exclusive[at + 1 :]]
    in_memory: dict[str, Any] = {"properties": {"session": {"const": "none"}}, "required": ["session"]}
    kept: list[dict[str, Any]] = [
        {"properties": {key: {"const": True}}, "required": [key]} for key in ("sticky", "structured_result")
    ]
    return {
        "$schema": DIALECT,
        "title": "Frontmatter of a subdeck preset",
        "type": "object",
        "properties": {name: {**schema_of(field.kind), "description": field.meaning} for name, field in FIELDS.items()},
        "required": ["name", "description"],
        "additionalProperties": False,
        "allOf": [{"not": {"anyOf": pairs}}, {"not": {**in_memory, "anyOf": kept}}],
    }
