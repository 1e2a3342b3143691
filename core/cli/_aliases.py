"""Hidden spellings of commands: former ones, and short ones that people type. No text names them."""

from __future__ import annotations

from collections.abc import Sequence

ALIASES: dict[str, tuple[str, ...]] = {
    "answer": ("logs", "--answer"),
    "interrupt": ("stop", "--turn"),
    "kill": ("stop", "--kill"),
    "ls": ("status",),
    "new": ("init",),
    "ps": ("status",),
    "resume": ("take-over",),
}
"""By hidden spelling: the words that replace it."""


def spelled_out(args: Sequence[str]) -> list[str]:
    """Return the words of a command line without hidden spellings."""
    return [*ALIASES.get(args[0], args[:1]), *args[1:]]
