"""Load the sides of a kind of agent on demand."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ..agent_kinds import KINDS, is_interactive
from ..permissions.path_readings import PathRules

TYPE_CHECKING = False  # like typing's; a wrapper needs no launching side, and most launchers no running side
if TYPE_CHECKING:
    from .agent import Agent
    from .child import Child
    from .interactive import Interactive


def launching_side(kind: str) -> Agent:
    """Return the side that finds, describes and checks a kind's agents. Raises KeyError for an unknown kind."""
    return import_module(f"{KINDS[kind].package}.agent").AGENT


def running_side(kind: str) -> Child:
    """Return the side that starts a kind's agents and reads their output. Raises KeyError for an unknown kind."""
    return import_module(f"{KINDS[kind].package}.child").CHILD


def interactive_side(kind: str) -> Interactive | None:
    """Return what starts and reads the UI of a kind; None if it has none."""
    return import_module(f"{KINDS[kind].package}.interactive").INTERACTIVE if is_interactive(kind) else None


def recorded_kind(lines: Sequence[bytes]) -> str | None:
    """Return the kind of a recording by its first lines; None if no kind recognizes them."""
    return next((kind for kind in KINDS if running_side(kind).knows(lines)), None)


# --- how an agent reads paths ----------------------------------------------------------------------------------------


def path_rules_of(kind: str) -> PathRules:
    """Return the path rules of a kind of agent. Raises KeyError for an unknown kind."""
    settings = [name for row in KINDS.values() for name in import_module(f"{row.package}.paths").SETTINGS]
    return PathRules(import_module(f"{KINDS[kind].package}.paths").read_path, tuple(dict.fromkeys(settings)))
