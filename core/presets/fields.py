"""Every key of a preset's frontmatter: what its value must look like, and what it does."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from ..agent_kinds import KINDS
from ..config.host_needs import HostName, Needs
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
    "name": PresetField(Words, "What the preset is called."),
    "description": PresetField(Words, "One sentence: what it is for and when to choose it."),
    "model": PresetField(
        Words,
        'provider/id, provider/id:thinking, a bare id, a role in quotes ("@fast"), or inherit: the parent\'s, else the'
        " agent's own default. A call may override it.",
    ),
    "thinking": PresetField(Literal[LEVELS], "How hard the model thinks; a suffix of the model overrides it."),
    "tools": PresetField(
        TOOLS,
        "The only tools of the child, built-in and of extensions; [] for none. Without it: the agent's own set.",
    ),
    "approved_tools": PresetField(TOOLS, _SAME),
    "allowed_tools": PresetField(TOOLS, _SAME),
    "denied_tools": PresetField(
        TOOLS, "All the active tools of the parent, or else all that the agent offers, but these. Not with tools."
    ),
    "permissions": PresetField(
        PERMISSIONS,
        "Rules for what the child does without asking (allow), has to ask for (ask) and may not do (deny), as"
        " bash(git *), edit(src/**) or read; beside those of the settings.",
    ),
    "interactive": PresetField(Switch, "Whether the child takes messages and asks while it runs, where its agent can."),
    "reply_timeout": PresetField(
        Duration, "How long what it asks waits for a reply before it is denied; instead of the settings' time."
    ),
    "idle_timeout": PresetField(
        Duration, "How long it waits after an interrupt for what is said next; instead of the settings' time."
    ),
    "prompt": PresetField(Verbatim, "The system prompt; used instead of the text below the frontmatter."),
    "prompt_mode": PresetField(PromptMode, "Whether the prompt follows the agent's own or replaces it."),
    "context_files": PresetField(
        Switch, "Whether the agent reads AGENTS.md and the like. Without it: yes, but not when the prompt replaces."
    ),
    "project_resources": PresetField(
        Switch, "false: the agent loads nothing that the project brings along for it, but context files."
    ),
    "inherit_context": PresetField(
        Switch, "Whether a parent's conversation is put before the task. Without it: as the settings say."
    ),
    "structured_result": PresetField(
        Switch, "Whether the child has to hand in its result through the tool subagent_finalize."
    ),
    "max_attempts": PresetField(Count, "How often at most the result is asked for, with structured_result."),
    "sticky": PresetField(
        Switch, "Whether one child session is continued from run to run, for this preset and directory."
    ),
    "session": PresetField(Literal["none"], "none: the child's session is never on disk and cannot be continued."),
    "check": PresetField(
        Name, "Which of the checks of your settings is run in the run's directory when its child has ended."
    ),
    "agent": PresetField(AgentName, f"auto, {', '.join(KINDS)}, or an agent of your settings."),
    "runner": PresetField(RunnerKind, "How the child is run."),
    "host": PresetField(HostName, "With runner hosts: the only host that it may run on."),
    "requires": PresetField(Needs, "With runner hosts: what its host has to have, as {gpu: 1}; each by a label."),
    "worktree": PresetField(
        Begins,
        "Whether it works in a git worktree of its own: true or files (of the files as they are, with what is not"
        " committed), head (of the commit that is checked out) or false.",
    ),
    "timeout": PresetField(Duration, "Ends the run after this time: seconds, or 90s, 10m, 2h."),
    "max_turns": PresetField(Count, "Ends the run after this many turns of the model."),
    "budget": PresetField(Dollars, "Ends the run when it has spent this many dollars."),
    "max_tokens": PresetField(Count, "Ends the run when it has used this many tokens, those of the cache too."),
    "stall": PresetField(Duration, "Ends the run when the child is silent that long while no tool runs."),
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
