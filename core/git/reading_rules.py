"""How a working tree's files are read: settings, ignore rules and attributes, at one time.

All snapshots of a run are read like its first one. Otherwise an agent could hide its changes by writing into `.git`, or
into its user's settings. Records hold this, so only light modules are imported.
"""

from __future__ import annotations

from msgspec import Struct


class Reading(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How one repository is read, and its settings at that time."""

    settings: tuple[tuple[str, str], ...] = ()
    info: dict[str, bytes] = {}
    """Files in its `info`, by name."""
    lists: dict[str, bytes] = {}
    """Contents of the lists named in its or the user's settings, by key."""
    unrun: tuple[str, ...] = ()
    """Filters that only the repository defines."""
    prints: dict[str, str] = {}
    """Fingerprints of its settings and hooks, by name."""
    inside: dict[str, Reading] = {}
    """Repositories inside it, by the digest of their path."""
    at_ns: int = 0
    """When it was read, in wall-clock time."""
