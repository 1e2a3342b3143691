"""Hidden spellings of commands: former ones, and short ones that people type. No text names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def _keep(words: Sequence[str]) -> list[str]:
    """Replace `keep RUN [NAME]`; it had no options with a value."""
    options = [word for word in words if word.startswith("-")]
    operands = [word for word in words if word not in options]
    return ["apply", *operands[:1], *operands[2:], *options, "=".join(("--to-branch", *operands[1:2]))]


def _mcp_install(words: Sequence[str]) -> list[str]:
    """Replace `mcp install CLIENT`; it required a client."""
    has_client = any(not word.startswith("-") for word in words)
    return ["connect", *words, *([] if has_client else [""])]


ALIASES: dict[str, tuple[str, ...] | Callable[[Sequence[str]], list[str]]] = {
    "answer": ("logs", "--answer"),
    "attach": ("open", "--pane"),
    "clean": ("rm", "--retention"),
    "interrupt": ("stop", "--turn"),
    "keep": _keep,
    "kill": ("stop", "--kill"),
    "ls": ("status",),
    "mcp install": _mcp_install,
    "mcp serve": ("mcp",),
    "mcp uninstall": ("disconnect",),
    "new": ("init",),
    "pi": ("connect",),
    "pi install": ("connect", "pi"),
    "pi status": ("connect",),
    "pi uninstall": ("disconnect", "pi"),
    "ps": ("status",),
    "resume": ("open", "--agent"),
    "take-over": ("open", "--agent", "--yes"),
}
"""By hidden spelling: the words that replace it, or a function that replaces it with the words behind it."""


def spelled_out(args: Sequence[str]) -> list[str]:
    """Return the words of a command line without hidden spellings."""
    name, *words = args
    action = next((word for word in words if not word.startswith("-")), "")
    if f"{name} {action}" in ALIASES:
        name = f"{name} {action}"
        words.remove(action)
    instead = ALIASES.get(name, (name,))
    return instead(words) if callable(instead) else [*instead, *words]
