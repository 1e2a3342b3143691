"""The table of agent kinds: what each kind can do. Reading it imports no kind.

To add a kind, write its package and add one row before the last, which accepts every run. These modules of the package
are loaded by name:

- `agent` has an `AGENT`, which finds, describes and checks the agent for a launch (`agents/agent.py` has a base).
- `child` has a `CHILD`, which starts and reads the agent in the wrapper (`agents/child.py`).
- `paths` has `read_path`, how the agent's tools read a path, and `SETTINGS`, the project's files that set it up.
- `interactive` has an `INTERACTIVE`, if the row is `interactive` (`agents/interactive.py`).

Code outside `agents/` asks a row for a capability. It never compares names.
"""

from __future__ import annotations

from msgspec import Struct

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Mapping


class AgentKind(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    """Its name in settings, flags and records."""
    title: str
    """Its name in texts."""
    package: str
    """The package with its modules."""
    interactive: bool = False
    """Whether the agent has its own UI, which opens the same conversations."""
    from_settings: bool = False
    """Whether the kind is a protocol without a program: its agents are the ones that the settings define."""
    bundled: bool = False
    """Whether subdeck contains it, so that every machine and every host has it."""
    recommended: bool = False
    """Whether `doctor` and the list of presets report that it is missing, with the command that installs it."""
    tool_programs: Mapping[str, str] = {}
    """Programs that its tools run, with the names of the tools. `doctor` checks them."""
    announces_models: bool = False
    """Whether a parent session of this kind lists its models in each call of a delegation tool."""
    mcp_client: bool = False
    """Whether `subdeck connect` can add the delegation tools to its settings (`mcp/clients.py`)."""


KINDS: dict[str, AgentKind] = {
    kind.name: kind
    for kind in (
        AgentKind(
            name="pi",
            title="pi",
            package="subdeck.core.agents.pi",
            interactive=True,
            recommended=True,
            tool_programs={"rg": "grep", "fd": "find"},
            announces_models=True,
        ),
        AgentKind(
            name="claude",
            title="Claude Code",
            package="subdeck.core.agents.claude",
            interactive=True,
            mcp_client=True,
        ),
        AgentKind(
            name="codex",
            title="Codex",
            package="subdeck.core.agents.codex",
            interactive=True,
            mcp_client=True,
        ),
        AgentKind(
            name="acp",
            title="ACP",
            package="subdeck.core.agents.acp",
            from_settings=True,
        ),
        AgentKind(
            name="offline",
            title="offline agent",
            package="subdeck.core.agents.offline",
            bundled=True,
        ),
    )
}
"""The kinds by name, in the order in which `auto` tries them."""

USUAL = "pi"
"""The protocol of an agent in the settings that names no kind. A wrapper loads it before it knows its run."""


def kind_of(agent: str) -> str:
    """Return the kind of an agent whose record names none: a run of an earlier version, or a name from the settings."""
    return agent if agent in KINDS else USUAL


def is_interactive(kind: str) -> bool:
    """Return whether the agent has its own UI; False for a kind that only a newer version knows."""
    return kind in KINDS and KINDS[kind].interactive


def bundled() -> tuple[str, ...]:
    """Return the kinds that every machine with subdeck has."""
    return tuple(kind.name for kind in KINDS.values() if kind.bundled)
