"""What stands in the fields of a launch dialog; pure."""

from __future__ import annotations

from msgspec import Struct

COPIES = 16
"""Runs that are launched at once at most."""
NO_TOOLS = "none"
"""Written into a field of tools for a run without any."""


class SaveAs(Struct, frozen=True):
    """The preset that an ad hoc run becomes."""

    name: str
    where: str
    """For this project or for all, in the dialog's words."""
    description: str


class Filled(Struct, frozen=True, kw_only=True):
    """As written, nothing in it is checked."""

    task: str = ""
    model: str = ""
    cwd: str = ""
    runner: str = ""
    copies: str = "1"
    tools: str = ""
    prompt: str = ""
    context: bool = True
    """Whether a conversation is handed over where there is one."""
    previous: bool = True
    """Whether `{previous}` stands for an answer."""
    save_as: SaveAs | None = None

    @property
    def count(self) -> int:
        """How many runs; 0 for what is no number that can be launched."""
        written = self.copies.strip() or "1"
        count = int(written) if written.isdecimal() else 0
        return count if count <= COPIES else 0


def tool_names(written: str) -> tuple[str, ...] | None:
    """Read a field of tools: None for the agent's own set, nothing at all where `none` is written."""
    names = tuple(written.replace(",", " ").split())
    return () if names == (NO_TOOLS,) else names or None
