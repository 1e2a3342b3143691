"""Renamed keys of settings and presets: the old name is still read, without a warning."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ContentError
from .values import is_blank
from .yaml_tree import Fields

SETTINGS = {"talk": "interactive", "answer_timeout": "reply_timeout", "hosts.reach": "hosts.unreachable_after"}
"""Old name -> new name, as in a settings file."""
PRESETS = {
    "talk": "interactive",
    "answer_timeout": "reply_timeout",
    "needs": "requires",
    "finalize": "structured_result",
}
"""Old name -> new name, as in the frontmatter of a preset."""


def with_new_names(fields: Fields, renamed: Mapping[str, str], section: str = "") -> tuple[Fields, dict[str, str]]:
    """Return the fields by their new names, and the old names that the file uses, by new name.

    Raises ContentError if both names of a key are set.
    """
    prefix = f"{section}." if section else ""
    pairs, written = dict(fields.pairs), dict[str, str]()
    for old, new in renamed.items():
        old_name, new_name = old.removeprefix(prefix), new.removeprefix(prefix)
        if not old.startswith(prefix) or old_name not in pairs:
            continue
        node, other = pairs.pop(old_name), pairs.get(new_name)
        if is_blank(node):
            continue
        if other is not None and not is_blank(other):
            what = f'"{old}" (line {node.line}) and "{new}" (line {other.line}) are the same key'
            raise ContentError(what, line=max(node.line, other.line), hint=f'keep "{new}"')
        pairs[new_name] = node
        written[new_name] = old_name
    return Fields(pairs, fields.line), written
