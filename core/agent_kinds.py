"""The kinds of agents: the one table of them. Naming a kind loads nothing of it."""

from __future__ import annotations

KINDS: dict[str, str] = {
    "pi": "subdeck.core.agents.pi",
    "claude": "subdeck.core.agents.claude",
    "codex": "subdeck.core.agents.codex",
    "acp": "subdeck.core.agents.acp",
    "offline": "subdeck.core.agents.offline",
}
"""The package of each kind, in the order in which `auto` tries them.

Its module `agent` has an `AGENT`, which is what launchers need (`agents/agent.py`); its module `child` has a `CHILD`,
which is what a wrapper needs (`agents/child.py`); its module `paths` says how its tools read a path, and which
files of a project are its settings (`agents/path_rules.py`).
"""

INTERACTIVE = frozenset({"pi", "claude", "codex"})
"""Those that have a program of their own for people, on the same conversations: their module `interactive` has an
`INTERACTIVE`, which is what a wrapper needs where a person takes over (`agents/interactive.py`)."""

NAMED_ONLY = "acp"
"""The kind that has no program of its own: its agents are those of the settings."""

USUAL = "pi"
"""What an agent of the settings speaks that names no kind, and what a wrapper loads before it knows its run."""


def kind_of(agent: str) -> str:
    """Return the kind of an agent that says none: a run of an earlier version, or a name of the settings."""
    return agent if agent in KINDS else USUAL
