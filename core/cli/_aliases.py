"""Hidden spellings of commands: former ones, and short ones that people type. No text names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def _keep(words: Sequence[str]) -> list[str]:
    """Replace `keep RUN [NAME]`; it had no options with a value."""
    options = [word for word in words if word.startswith("-")]
    given = [word for word in words if word not in options]
    return ["apply", *given[:1], *given[2:], *options, "=".join(("--to-branch", *given[1:2]))]


ALIASES: dict[str, tuple[str, ...] | Callable[[Sequence[str]], list[str]]] = {
    "answer": ("logs", "--answer"),
    "attach": ("open", "--pane"),
    "clean": ("rm", "--retention"),
    "interrupt": ("stop", "--turn"),
    "keep": _keep,
    "kill": ("stop", "--kill"),
    "ls": ("status",),
    "new": ("init",),
    "ps": ("status",),
    "resume": ("open", "--agent"),
    "take-over": ("open", "--agent", "--yes"),
}
"""By hidden spelling: the words that replace it, or a function that replaces it with the words behind it."""


def spelled_out(args: Sequence[str]) -> list[str]:
    """Return the words of a command line without hidden spellings."""
    instead = ALIASES.get(args[0], args[:1])
    return instead(args[1:]) if callable(instead) else [*instead, *args[1:]]
