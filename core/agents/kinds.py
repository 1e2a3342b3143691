"""Both sides of a kind of agent, loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ..agent_kinds import INTERACTIVE, KINDS
from ..permissions.path_readings import PathRules

TYPE_CHECKING = False  # as typing's; the wrapper needs no launching side, and most launchers no running one
if TYPE_CHECKING:
    from .agent import Agent
    from .child import Child
    from .interactive import Interactive


def launching_side(kind: str) -> Agent:
    """Return what finds, describes and checks agents of a kind. Raises KeyError for one that is not in the table."""
    return import_module(f"{KINDS[kind]}.agent").AGENT


def running_side(kind: str) -> Child:
    """Return what starts and reads children of a kind. Raises KeyError for one that is not in the table."""
    return import_module(f"{KINDS[kind]}.child").CHILD


def interactive_side(kind: str) -> Interactive | None:
    """Return what starts and reads the program of a kind for people; None where it has none."""
    return import_module(f"{KINDS[kind]}.interactive").INTERACTIVE if kind in INTERACTIVE else None


def recorded_kind(lines: Sequence[bytes]) -> str | None:
    """Return the kind of a recording by its first lines; None where no kind knows them."""
    return next((kind for kind in KINDS if running_side(kind).knows(lines)), None)


# --- how an agent reads paths ----------------------------------------------------------------------------------------


def path_rules_of(kind: str) -> PathRules:
    """Return the rules of a kind of agent. Raises KeyError for one that is not in the table."""
    settings = [name for package in KINDS.values() for name in import_module(f"{package}.paths").SETTINGS]
    return PathRules(import_module(f"{KINDS[kind]}.paths").read_path, tuple(dict.fromkeys(settings)))
