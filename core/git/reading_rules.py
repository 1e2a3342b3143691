"""What decides how the files of a working tree are read: settings, ignore rules and attributes, as of one time.

All snapshots of a run are read as its first one was. Otherwise a child could hide its changes by what it writes into
`.git`, or into the settings of its user. Records hold this: only light modules are imported here.
"""

from __future__ import annotations

from msgspec import Struct


class Reading(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How one repository is read, and what its settings were then."""

    settings: tuple[tuple[str, str], ...] = ()
    info: dict[str, bytes] = {}
    """The files of its `info`, by name."""
    lists: dict[str, bytes] = {}
    """What the lists hold that its settings or the user's name, by the key of the setting."""
    unrun: tuple[str, ...] = ()
    """Filters that only the repository itself names."""
    prints: dict[str, str] = {}
    """Fingerprints of its settings and hooks, by name."""
    inside: dict[str, Reading] = {}
    """Of the repositories inside of it, by the digest of their path."""
    at_ns: int = 0
    """When it was read, by the clock on the wall."""
