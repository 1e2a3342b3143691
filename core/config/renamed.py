"""Renamed keys of presets: the old name is still read, without a warning."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ContentError
from .values import is_blank
from .yaml_tree import Fields

PRESETS = {
    "talk": "interactive",
    "answer_timeout": "reply_timeout",
    "needs": "requires",
    "finalize": "structured_result",
}
"""Old name -> new name, as in the frontmatter of a preset."""


def with_new_names(fields: Fields, renamed: Mapping[str, str]) -> tuple[Fields, dict[str, str]]:
    """Return the fields by their new names, and the old names that the file uses, by new name.

    Raises ContentError if both names of a key are set.
    """
    pairs, written = dict(fields.pairs), dict[str, str]()
    for old, new in renamed.items():
        if old not in pairs:
            continue
        node, new_node = pairs.pop(old), pairs.get(new)
        if is_blank(node):
            continue
        if new_node is not None and not is_blank(new_node):
            raise repeated(old, node.line, new, new_node.line, new)
        pairs[new] = node
        written[new] = old
    return Fields(pairs, fields.line), written


def repeated(name: str, line: int, other: str, other_line: int, kept: str) -> ContentError:
    """Return the error of a key that is set under two names."""
    what = f'"{name}" (line {line}) and "{other}" (line {other_line}) are the same key'
    return ContentError(what, line=max(line, other_line), hint=f'keep "{kept}"')
