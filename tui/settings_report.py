"""The texts about settings that were read again; pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.config.files import KEYS
from ..core.errors import SubdeckError
from ..core.text.plain import plain

NAMED = 8
"""Settings named in a toast; the others are counted."""


def reloaded_text(changed: Sequence[str]) -> str:
    """Return the names of the settings that apply now, and of the others, which apply after a restart."""
    later = [key for key in changed if KEYS[key].setting.needs_restart]
    now = [key for key in changed if key not in later]
    lines = [f"Settings reloaded: {_named(now)}"] if now else []
    if later:
        lines.append(
            f"{'Changed' if now else 'Settings changed'}, in effect after a restart of the app: {_named(later)}"
        )
    return "\n".join(lines) or "Settings reloaded: no value changed"


def unusable_text(problem: SubdeckError) -> str:
    """Return why the files cannot be used."""
    return plain(f"Settings not reloaded: {problem}\n  The earlier settings stay in effect.")


def _named(keys: Sequence[str]) -> str:
    more = len(keys) - NAMED
    return ", ".join((*keys[:NAMED], *((f"and {more} more",) if more > 0 else ())))
