"""Detects the program that an agent file was written for."""

from __future__ import annotations

import os

from ..errors import ContentError, PresetError
from .file import SUFFIX
from .forms.form import read_frontmatter
from .sources import FORMS, form_of

_DIRECTORIES = {".claude": "claude", ".codex": "codex", ".opencode": "opencode", "opencode": "opencode"}
"""Agent directories of the programs, in a project or in the home directory."""


def recognised_form(path: str, text: str) -> str:
    """Return the form of a file, from its directories, its suffix, or fields that only one form has.

    Raises PresetError if this is not conclusive.
    """
    parts = os.path.abspath(path).split(os.sep)[:-1]
    suffix = os.path.splitext(path)[1]
    of_suffix = [form for form, ending in FORMS.items() if ending == suffix]
    for part in reversed(parts):
        if _DIRECTORIES.get(part) in of_suffix:
            return _DIRECTORIES[part]
    if len(of_suffix) == 1:
        return of_suffix[0]
    if suffix == SUFFIX:
        try:
            fields = read_frontmatter(text).fields
        except ContentError as error:
            raise PresetError(error.what, where=error.within(path), hint=error.hint) from error
        marked = [form for form in of_suffix if fields is not None and form_of(form).marks(fields)]
        if len(marked) == 1:
            return marked[0]
    hint = f"add --from: {', '.join(FORMS)}"
    raise PresetError("cannot tell which program the file was written for", where=path, hint=hint)
