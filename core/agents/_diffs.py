"""Diffs of agents' edits, as text; no input can make these functions raise."""

from __future__ import annotations

from typing import Any

from ..run.events import CONTENT_LIMIT, CUT
from ..text.visible import visible_name
from ._json_lines import count, items, mapping, string

_EFFORT = 40_000
"""Maximum pairs of lines that a wrapper compares for one edit: at worst a few hundredths of a second."""


def kept_diff(diff: str) -> str:
    """Cut a diff to about `CONTENT_LIMIT` characters, and mark the cut."""
    return diff if len(diff) <= CONTENT_LIMIT else f"{diff[:CONTENT_LIMIT]}\n{CUT}"


def diff_of_pi(details: dict[str, Any]) -> str:
    """Return the diff of a pi edit: a patch, or before pi 1.0 the diff that pi displays."""
    return kept_diff(string(details.get("patch")) or string(details.get("diff")))


def diff_of_claude(response: dict[str, Any]) -> str:
    """Return the diff of a Claude Code edit, from the structured response of its tool."""
    hunks: list[str] = []
    for hunk in map(mapping, items(response.get("structuredPatch"))):
        old, new = (f"{count(hunk.get(f'{side}Start'))},{count(hunk.get(f'{side}Lines'))}" for side in ("old", "new"))
        hunks += (f"@@ -{old} +{new} @@", *map(string, items(hunk.get("lines"))))
    return kept_diff("\n".join(hunks))


def diff_of_texts(edits: list[dict[str, str]]) -> str:
    """Return the diff of old and new texts, each with its path; the line numbers in the files are unknown."""
    from ..run.edits import exact_diff  # needed by wrappers only for agents that omit tool arguments

    written: list[str] = []
    for edit in edits:
        if path := edit.get("path"):
            written.append(f"+++ {visible_name(path)}")
        hunk: list[str] = []
        for line in (*exact_diff(edit, _EFFORT), None):
            if line is not None and line.sign:
                hunk.append(f"{line.sign}{line.text}")
            elif hunk:
                old, new = (sum(shown[0] in (sign, " ") for shown in hunk) for sign in "-+")
                written += (f"@@ -0,{old} +0,{new} @@", *hunk)
                hunk = []
    return "\n".join(written)
