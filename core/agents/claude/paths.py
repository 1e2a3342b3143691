"""How Claude Code's tools read a path, as 2.1.330 does, and what of a project it starts programs from."""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import suppress

from ...errors import UsageError
from ...permissions.path_patterns import segments
from ...permissions.path_readings import Reading, home_of, read_as
from ...permissions.shell_words import ACTIVE_STAR
from ...run.model import Permissions

SETTINGS = (".claude", ".claude.json", ".mcp.json", ".claude-plugin")

_BLANKS = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_ENDS = re.compile(f"^[{_BLANKS}]+|[{_BLANKS}]+$")
_TREES = "/.claude/worktrees/*"
"""Where it makes working trees for nested agents."""
_STARS = re.compile(f"{ACTIVE_STAR}+")
_SIGNS = re.compile(r"[\\?\[\]{}()!#]")
_SCREENSHOT = re.compile("([ \u202f])(AM|PM)(?=\\.png$)")


def read_path(tool: str, path: str, directory: str) -> Reading:
    """Read a path without what is blank at its ends, composed; of a screenshot the name with the other blank, too."""
    plain = _ENDS.sub("", path)
    forms = [path, plain, home_of(plain)]
    forms += [unicodedata.normalize(name, form) for form in tuple(forms) for name in ("NFC", "NFD")]
    if tool == "read":
        forms += [_SCREENSHOT.sub(_with_other_blank, form) for form in tuple(forms)]
    is_certain = plain == path and not plain.startswith("~")
    return read_as(dict.fromkeys(forms), directory, is_certain=is_certain)


def _with_other_blank(found: re.Match[str]) -> str:
    return f"{' ' if found[1] != ' ' else chr(0x202F)}{found[2]}"


def denied_reads(permissions: Permissions | None, cwd: str) -> tuple[str, ...]:
    """Return rules of Claude Code's own against reading what rules of the run deny.

    It reads some files without a call that could be asked about: those that a CLAUDE.md imports, and each CLAUDE.md on
    the way to a file that it opens.
    """
    if permissions is None:
        return ()
    from ...permissions.rules import Rule, parse_rule  # few runs have rules

    rules: list[Rule] = []
    for text in permissions.deny:
        with suppress(UsageError):  # of a newer version, which denies every call
            rules.append(parse_rule(text))
    patterns = [rule.pattern for rule in rules if rule.tool == "read" and rule.pattern]
    bases = [base + tree for base in dict.fromkeys((cwd, os.path.realpath(cwd))) for tree in ("", _TREES)]
    return tuple(dict.fromkeys(_own_rule(pattern, base) for pattern in patterns for base in bases))


def _own_rule(pattern: str, base: str) -> str:
    """Write a pattern as that of an absolute path; a sign that means something there stands for any one."""
    names = (
        "**" if part == ACTIVE_STAR else _SIGNS.sub("?", _STARS.sub("*", part)) for part in segments(pattern, base)
    )
    return f"Read(//{'/'.join(names)})"
