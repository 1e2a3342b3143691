"""What a tool answers, and what it reports on the way."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class ToolProgress(Struct, frozen=True):
    text: str
    details: dict[str, Any]


class ToolAnswer(Struct, frozen=True):
    text: str
    """For the model."""
    details: dict[str, Any]
    """For people and a resumed session: as `structured`, with the whole timeline of each run."""
    structured: dict[str, Any]
    """For the model too, as the tool's output schema says; without timelines."""
    is_error: bool = False
    """The call was refused, or none of its runs completed."""
