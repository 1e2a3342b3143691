"""How Claude Code's tools read a path, as 2.1.330 does, and what of a project it starts programs from."""

from __future__ import annotations

import re
import unicodedata

from ...run.path_readings import Reading, home_of, read_as

SETTINGS = (".claude", ".claude.json", ".mcp.json", ".claude-plugin")

_BLANKS = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_ENDS = re.compile(f"^[{_BLANKS}]+|[{_BLANKS}]+$")
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
