"""The fields of a run, each defined once: its type, its meaning, and where it can be set.

Annotations are evaluated here, as in `run.model`.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Struct, structs

from ..agent_kinds import KINDS
from ..config.host_settings import HostName, Needs
from ..config.settings import AgentName, PermissionSettings
from ..config.values import (
    OF_UNIT,
    Begins,
    Count,
    Duration,
    Name,
    Rules,
    Spelling,
    Switch,
    Verbatim,
    Words,
    schema_of,
    without_none,
)
from ..models.catalog import LEVELS
from ..run.inputs import Argument, Option
from ..run.limits import LIMITS, Limit, Limits
from ..run.model import Permissions, PromptMode, RunnerKind, WorktreeFrom


class Merge(Enum):
    """How the values of several layers are combined."""

    NEAREST = "nearest"
    """The call's value, or the preset's, or the settings'."""
    LOWEST = "lowest"
    """Like NEAREST, but never above the settings' value."""
    ALL = "all"
    """The values of all layers together."""


class Field(Struct, frozen=True):
    meaning: str
    """For preset authors; also shown by editors."""
    kind: Any = None
    """Type of its values in a preset, as for `read_value`; None for the attribute's type."""
    key: str = ""
    """Key in a preset file; empty for the attribute's name."""
    aliases: tuple[str, ...] = ()
    """Other keys for the same field."""
    setting: str = ""
    """Its setting, such as `limits.timeout`; empty for none."""
    merge: Merge = Merge.NEAREST
    is_of_preset: bool = False
    """Whether a call can set it only without a preset."""
    takes_empty: bool = False
    """Whether an empty text is a value rather than an omitted field."""
    option: Option | None = None
    argument: Argument | None = None


ANY_HOST = "any"
"""A parent agent's word for any host."""

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
"""Read by `read_tools` of a preset, because the tools' keys are checked together."""
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


class RunSpec(Limits, frozen=True, kw_only=True):
    """One layer's fields, the limits included; omitted fields have their defaults.

    `Preset` and `RunRequest` are layers with additional fields. All layers together give a `ResolvedSpec`.
    """

    model: Annotated[
        Words | None,
        Field(
            'provider/id, provider/id:thinking, a bare id, a role in quotes ("@fast"), or inherit '
            "(the parent's model, or the agent's default without a parent). A call can override it.",
            setting="default_model",
            option=Option("--model", "M", "Model as provider/id, instead of the preset's model."),
            argument=Argument(
                "model",
                "Model to use instead of the preset's. One of the currently available models, with or "
                "without a thinking level (provider/id:high), or a role (@fast).",
                parse=lambda text: text.strip() or None,
            ),
        ),
    ] = None
    """As written; None if absent or blank."""
    thinking: Annotated[
        str | None,
        Field(
            "How hard the model thinks. A suffix of the model, such as :high, overrides it.",
            kind=Literal[LEVELS],
        ),
    ] = None
    """One of `models.catalog.LEVELS`; a suffix of the model overrides it."""
    tools: Annotated[
        tuple[str, ...] | None,
        Field(
            "The only tools that the agent may use, built in or from extensions; [] for none. "
            "Default: the agent's own set.",
            kind=TOOLS,
            aliases=("approved_tools", "allowed_tools"),
            is_of_preset=True,
            option=Option("--tools", "CSV", "With --no-preset: tools that the agent may use; empty for none."),
        ),
    ] = None
    """The allowlist; None means the agent's own set, empty means no tools."""
    denied_tools: Annotated[
        tuple[str, ...] | None,
        Field(
            "Tools that the agent may not use. It gets all other active tools of its parent, or all "
            "that the agent provides. Cannot be combined with tools.",
            kind=TOOLS,
        ),
    ] = None
    """Tools to exclude; never together with `tools`."""
    permissions: Annotated[
        Permissions,
        Field(
            "Rules for what the agent may do without asking (allow), must ask for (ask) and must not "
            "do (deny), such as bash(git *), edit(src/**) or read. They add to the rules in the "
            "settings.",
            kind=PERMISSIONS,
            setting="permissions",
            merge=Merge.ALL,
        ),
    ] = Permissions()
    interactive: Annotated[
        Switch | None,
        Field(
            "Accept messages and ask questions while running, if the agent can. false: "
            "non-interactive. No messages in, no questions out.",
            setting="interactive",
        ),
    ] = None
    reply_timeout: Annotated[
        Duration | None,
        Field(
            "How long a permission request or question waits for a reply before it is denied. Overrides the setting.",
            setting="reply_timeout",
        ),
    ] = None
    """Seconds."""
    idle_timeout: Annotated[
        Duration | None,
        Field(
            "How long an interrupted agent waits for your message. After that its run ends. Overrides the setting.",
            setting="idle_timeout",
        ),
    ] = None
    """Seconds."""
    prompt: Annotated[
        Verbatim,
        Field(
            "System prompt, used instead of the text below the frontmatter.",
            is_of_preset=True,
            option=Option("--prompt", "FILE", "With --no-preset: file with the system prompt."),
        ),
    ] = ""
    prompt_mode: Annotated[PromptMode, Field("Append the prompt to the agent's own system prompt, or replace it.")] = (
        PromptMode.APPEND
    )
    context_files: Annotated[
        Switch | None,
        Field(
            "Whether the agent reads AGENTS.md and similar files. Default: true, or false with prompt_mode: replace.",
        ),
    ] = None
    project_resources: Annotated[
        Switch | None,
        Field(
            "false: the agent loads none of the project's extensions, servers, skills or settings, only context files.",
        ),
    ] = None
    inherit_context: Annotated[
        Switch | None,
        Field(
            "Pass the parent's conversation to the agent before the task. Overrides the setting.",
            setting="inherit_context",
        ),
    ] = None
    structured_result: Annotated[
        Switch,
        Field("Require a structured result, returned through the tool subagent_finalize."),
    ] = False
    max_attempts: Annotated[
        Count | None,
        Field("Maximum number of attempts to get a structured result.", setting="max_attempts"),
    ] = None
    sticky: Annotated[Switch, Field("Continue the same agent session in every run of this preset and directory.")] = (
        False
    )
    keeps_session: Annotated[
        bool,
        Field("none: the agent's session is never saved and cannot be continued.", kind=Literal["none"], key="session"),
    ] = True
    """False for `session: none`: the agent's session is never on disk."""
    check: Annotated[
        Name | None,
        Field(
            "Name of a check from your settings, run in the run's directory after the agent finishes.",
            takes_empty=True,
            option=Option(
                "--check", "NAME", "Check from your settings to run after the agent finishes; empty for none."
            ),
        ),
    ] = None
    agent: Annotated[
        AgentName | None,
        Field(
            f"auto, {', '.join(KINDS)}, or an agent from your settings.",
            setting="agent",
            option=Option("--agent", "A", f"Agent to use: auto, {', '.join(KINDS)}, or a name from your settings."),
        ),
    ] = None
    runner: Annotated[
        str | None,
        Field(
            "How to run the agent: process (detached), tmux (in a tmux window) or hosts (on another machine).",
            kind=RunnerKind,
            setting="runner",
            option=Option("--runner", "R", "How to run the agent: process, tmux or hosts."),
        ),
    ] = None
    host: Annotated[
        HostName | None,
        Field(
            "With runner: hosts, the only host to run on.",
            takes_empty=True,
            option=Option("--host", "NAME", "With --runner hosts: the host to run on (default: any)."),
            argument=Argument(
                "host",
                f"Run on this host of the user, {ANY_HOST} for any (default: from the preset).",
                parse=lambda text: {"": None, ANY_HOST: ""}.get(text.strip(), text.strip()),
                is_of_hosts=True,
            ),
        ),
    ] = None
    """The only host that it may run on; empty for any."""
    needs: Annotated[
        Needs | None,
        Field(
            "With runner: hosts, the resources that its host must have, such as {gpu: 1}.",
            key="requires",
            option=Option(
                *("--needs", "LABEL=N"),
                "With --runner hosts: a resource that the run requires, such as gpu=1; may be repeated.",
                is_list=True,
            ),
            argument=Argument(
                *("needs", 'Run on a host with these resources: {"gpu": 1}.', "amounts"), is_of_hosts=True
            ),
        ),
    ] = None
    """Amounts that its host must have, by label."""
    worktree: Annotated[
        Begins | None,
        Field(
            "Work in a separate git worktree: true or files (from your current files, uncommitted "
            "changes included), head (from the last commit) or false.",
            setting="worktree",
            argument=Argument(
                "worktree",
                "true: the subagent works on a copy of your current files, in its own git worktree and "
                "branch (default: from the preset).",
                "boolean",
                lambda is_wanted: WorktreeFrom.FILES if is_wanted else None,
            ),
        ),
    ] = None
    """Whether it works in a worktree, and what the worktree starts from."""

    @property
    def limits(self) -> Limits:
        """The limits, as the run's record has them."""
        return Limits(**{name: getattr(self, name) for name in Limits.__struct_fields__})


@cache
def table() -> Mapping[str, Field]:
    """Return the fields by attribute name, the limits last."""
    hints = get_type_hints(RunSpec, include_extras=True)
    fields = {name: _field(hint) for name, hint in hints.items() if name not in LIMITS}
    return fields | {name: _of_limit(name, limit) for name, limit in LIMITS.items()}


def _field(hint: Any) -> Field:
    field: Field = next(each for each in hint.__metadata__ if isinstance(each, Field))
    if field.kind is not None:
        return field
    kind, *notes = hint.__origin__, *(each for each in hint.__metadata__ if not isinstance(each, Field))
    whole = Annotated[kind, *notes] if notes else kind  # pyright: ignore[reportInvalidTypeForm]
    return structs.replace(field, kind=without_none(whole))


def _of_limit(name: str, limit: Limit) -> Field:
    return Field(
        limit.meaning,
        kind=OF_UNIT[limit.unit],
        setting=f"limits.{name}",
        merge=Merge.LOWEST,
        option=limit.option,
        argument=limit.argument,
    )
