"""Say what a preset comes to, a line for each thing; the same in the app and on the command line."""

from __future__ import annotations

from ..presets.file import Preset
from ..run.describe import clock
from ..run.model import Limits, Tools

OWN_SET = "the agent's own set"


def tools_words(preset: Preset, tools: Tools | None) -> str:
    """Name the tools of a run of it; as written where they cannot be decided (None)."""
    if tools is None:
        return ", ".join(preset.tools or ())
    if tools.resolved is None:
        return OWN_SET
    names = ", ".join(tools.resolved) or "none"
    return f"{names} (all but {', '.join(preset.denied_tools)})" if preset.denied_tools else names


def limits_words(limits: Limits) -> str:
    """`timeout 30:00, 100 turns, stall 10:00`; empty where nothing ends a run from outside."""
    said = (
        "" if limits.timeout is None else f"timeout {clock(limits.timeout)}",
        "" if limits.max_turns is None else f"{limits.max_turns} turns",
        "" if limits.stall is None else f"stall {clock(limits.stall)}",
    )
    return ", ".join(filter(None, said))
