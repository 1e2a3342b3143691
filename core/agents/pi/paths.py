"""How pi's tools resolve paths (`path-utils.js` of 0.73.1 and 1.5.2), and the project files from which it starts
programs.
"""

from __future__ import annotations

import os
import re
import unicodedata

from ...permissions.path_readings import UNICODE_BLANKS, Reading, home_of, is_readable, of_file_url, read_as

SETTINGS = (".pi", ".agents")

_NARROW_BLANK = "\u202f"


def read_path(tool: str, path: str, directory: str) -> Reading:
    """Resolve a path as either version may. `~` depends on the agent's HOME, and only the newer version knows URLs:
    neither is certain.
    """
    plain = UNICODE_BLANKS.sub(" ", path).removeprefix("@")
    forms = [plain, UNICODE_BLANKS.sub(" ", path.removeprefix("@"))]
    is_certain = plain == path.removeprefix("@") and not (plain.startswith("~") or plain[:5].lower() == "file:")
    forms += [home_of(form) for form in forms if form == "~" or form.startswith("~/")]
    forms += [url_path for form in tuple(forms) for url_path in of_file_url(form)]
    reading = read_as(forms, directory, is_certain=is_certain)
    return _with_variants(reading) if tool == "read" else reading


def _with_variants(reading: Reading) -> Reading:
    """Add the other spellings that pi tries if a file does not exist."""
    paths = dict.fromkeys(reading.paths)
    for path in reading.paths:
        if not _exists(path):
            decomposed = unicodedata.normalize("NFD", path)
            screenshot = re.sub(r" (AM|PM)\.", rf"{_NARROW_BLANK}\1.", path, flags=re.IGNORECASE)
            paths |= dict.fromkeys((screenshot, decomposed, _curly(path), _curly(decomposed)))
    added = [path for path in paths if path not in reading.paths and _exists(path)]
    is_certain = reading.is_certain and all(is_readable(path.replace(_NARROW_BLANK, " ")) for path in added)
    return Reading(tuple(paths), is_certain)


def _curly(path: str) -> str:
    return path.replace("'", "\u2019")


def _exists(path: str) -> bool:
    try:
        return os.access(path, os.F_OK)
    except ValueError:
        return False
