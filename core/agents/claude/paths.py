"""How Claude Code's tools resolve paths (as in 2.1.330), and the project files from which it starts programs."""

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
"""Its worktrees for nested agents."""
_STARS = re.compile(f"{ACTIVE_STAR}+")
_SIGNS = re.compile(r"[\\?\[\]{}()!#]")
_SCREENSHOT = re.compile("([ \u202f])(AM|PM)(?=\\.png$)")


def read_path(tool: str, path: str, directory: str) -> Reading:
    """Resolve a path with whitespace trimmed and Unicode composed; a screenshot's name also with the other kind of
    space.
    """
    plain = _ENDS.sub("", path)
    forms = [path, plain, home_of(plain)]
    forms += [unicodedata.normalize(name, form) for form in tuple(forms) for name in ("NFC", "NFD")]
    if tool == "read":
        forms += [_SCREENSHOT.sub(_with_other_blank, form) for form in tuple(forms)]
    is_certain = plain == path and not plain.startswith("~")
    return read_as(dict.fromkeys(forms), directory, is_certain=is_certain)


def _with_other_blank(match: re.Match[str]) -> str:
    return f"{' ' if match[1] != ' ' else chr(0x202F)}{match[2]}"


def denied_reads(permissions: Permissions | None, cwd: str) -> tuple[str, ...]:
    """Return Claude Code rules against reading files that the run's rules deny.

    It reads some files without a call that could be asked about: files that a CLAUDE.md imports, and each CLAUDE.md on
    the path to an opened file.
    """
    if permissions is None:
        return ()
    from ...permissions.rules import Rule, parse_rule  # few runs have rules

    rules: list[Rule] = []
    for text in permissions.deny:
        with suppress(UsageError):  # a newer version's rule; it denies every call
            rules.append(parse_rule(text))
    patterns = [rule.pattern for rule in rules if rule.tool == "read" and rule.pattern]
    bases = [base + tree for base in dict.fromkeys((cwd, os.path.realpath(cwd))) for tree in ("", _TREES)]
    return tuple(dict.fromkeys(_own_rule(pattern, base) for pattern in patterns for base in bases))


def _own_rule(pattern: str, base: str) -> str:
    """Convert a pattern to one for an absolute path; a special character becomes `?`."""
    names = (
        "**" if part == ACTIVE_STAR else _SIGNS.sub("?", _STARS.sub("*", part)) for part in segments(pattern, base)
    )
    return f"Read(//{'/'.join(names)})"
