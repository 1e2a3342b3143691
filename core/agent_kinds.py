"""The table of agent kinds. Naming a kind imports none of its code."""

from __future__ import annotations

KINDS: dict[str, str] = {
    "pi": "subdeck.core.agents.pi",
    "claude": "subdeck.core.agents.claude",
    "codex": "subdeck.core.agents.codex",
    "acp": "subdeck.core.agents.acp",
    "offline": "subdeck.core.agents.offline",
}
"""The package of each kind, in the order in which `auto` tries them.

Each package has a module `agent` with an `AGENT` for launchers (`agents/agent.py`), a module `child` with a `CHILD` for
wrappers (`agents/child.py`), and a module `paths`, which says how its tools read a path and which project files
are its settings (`agents/path_rules.py`).
"""

INTERACTIVE = frozenset({"pi", "claude", "codex"})
"""Kinds with an interactive program for the same conversations. Their module `interactive` has an `INTERACTIVE`, for
wrappers of runs that a person opens in the agent (`agents/interactive.py`)."""

NAMED_ONLY = "acp"
"""The kind without its own program: its agents are defined in the settings."""

USUAL = "pi"
"""The kind of an agent whose settings name none, and the one loaded by a wrapper before it knows its run."""


def kind_of(agent: str) -> str:
    """Return the kind of an agent; `USUAL` if its name is not one: an earlier version's run, or a settings name."""
    return agent if agent in KINDS else USUAL
