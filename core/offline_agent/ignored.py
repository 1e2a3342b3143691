"""What a search leaves out: version control, installed packages, caches, and what `.gitignore` names.

The common part of gitignore's rules: names, paths, `*`, `?`, `[…]`, `**`, `!`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_SKIPPED = """
    .git .hg .svn .jj node_modules bower_components .venv venv __pycache__ .tox .nox .eggs .cache .mypy_cache
    .ruff_cache .pytest_cache .gradle .terraform .direnv .next .nuxt .idea
"""
SKIPPED_DIRECTORIES = frozenset(_SKIPPED.split())
_RUN_STORAGE = "/.pi/subagents/"
"""Directories below it hold runs: their prompts repeat the very words that are looked for."""


class IgnoreRule(NamedTuple):
    pattern: re.Pattern[str]
    directories_only: bool
    keeps: bool
    """True for a `!` rule, which takes an earlier one back."""


def is_skipped(relative: str) -> bool:
    """Return whether a directory, by its path from the root, is never searched."""
    path = f"/{relative}"
    parent, _, name = path.rpartition("/")
    return name in SKIPPED_DIRECTORIES or f"{parent}/".endswith(_RUN_STORAGE)


def parse_rules(text: str, base: str) -> tuple[IgnoreRule, ...]:
    """Read a `.gitignore` that lies in directory `base` (a path from the root, empty for the root)."""
    return tuple(rule for line in text.splitlines() if (rule := _rule(line.rstrip(), base)))


def is_ignored(relative: str, is_directory: bool, rules: Iterable[IgnoreRule]) -> bool:
    """Return what the last rule that fits says; without one nothing is ignored."""
    ignored = False
    for rule in rules:
        if ignored == rule.keeps and (is_directory or not rule.directories_only) and rule.pattern.fullmatch(relative):
            ignored = not rule.keeps
    return ignored


def _rule(line: str, base: str) -> IgnoreRule | None:
    keeps = line.startswith("!")
    body = line[1:] if keeps else line
    if not body or body.startswith("#"):
        return None
    directories_only = body.endswith("/")
    body = body.rstrip("/")
    anchored = "/" in body
    parts = [part for part in body.split("/") if part]
    if not parts or parts.count("**") > 2:
        return None
    expression = re.escape(f"{base}/" if base else "")
    if not anchored:
        expression += "(?:.*/)?"
    for position, part in enumerate(parts):
        last = position == len(parts) - 1
        if part == "**":
            expression += ".*" if last else "(?:.*/)?"
        else:
            expression += _segment(part) + ("" if last else "/")
    try:
        return IgnoreRule(re.compile(expression, re.DOTALL), directories_only, keeps)
    except re.error:
        return None


def _segment(part: str) -> str:
    """One path segment as a regular expression; atomic between stars, so that no rule can take long."""
    first, *middle = (_without_star(piece) for piece in part.split("*"))
    if not middle:
        return first
    last = middle.pop()
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + f"[^/]*{last}"


def _without_star(piece: str) -> str:
    expression = ""
    for token in re.findall(r"\[!?[^\]]+\]|\\?.", piece, re.DOTALL):
        if token == "?":
            expression += "[^/]"
        elif len(token) > 2:
            negated = token.startswith("[!")
            members = token[2 if negated else 1 : -1].replace("\\", "\\\\")
            expression += f"[{'^' if negated else ''}{members}]"
        else:
            expression += re.escape(token[-1])
    return expression
