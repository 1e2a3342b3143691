"""What rules for paths go by: how the agent of a run reads paths, and the settings of all kinds of agents."""

from __future__ import annotations

from importlib import import_module

from ..agent_kinds import KINDS
from ..permissions.path_readings import PathRules


def path_rules_of(kind: str) -> PathRules:
    """Return the rules of a kind of agent. Raises KeyError for one that is not in the table."""
    settings = [name for package in KINDS.values() for name in import_module(f"{package}.paths").SETTINGS]
    return PathRules(import_module(f"{KINDS[kind]}.paths").read_path, tuple(dict.fromkeys(settings)))
