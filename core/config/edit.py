"""Adds an entry to a settings file's text; everything else, comments included, stays the same."""

from __future__ import annotations

import os
import re
from typing import Any

from ..errors import ContentError, SettingsError
from ..paths import user_settings_file
from ..system import files
from .yaml_tree import Fields, Items, Node, Text, decode, parse_mapping, read_content

_BY_HAND = "add it by hand"
_MARK = b"\xef\xbb\xbf"


def add_to_settings(section: str, name: str, value: str) -> None:
    """Write `name: value` below a section of the user's settings; create the file if it is missing.

    `value` is YAML on one line. The file is replaced atomically, and a link is kept. Raises SettingsError if the name
    is already set, or the file's form does not allow the change.
    """
    path = user_settings_file()
    try:
        content = read_content(path)
    except FileNotFoundError:
        content = b""
    except ContentError as error:
        raise SettingsError(error.what, where=path, hint=error.hint) from error
    try:
        text = with_entry(decode(content), section, name, value)
    except ContentError as error:
        raise SettingsError(error.what, where=error.within(path), hint=error.hint) from error
    written = text.replace("\n", "\r\n") if b"\r\n" in content else text
    file = os.path.realpath(path)
    try:
        files.make_private_directory(os.path.dirname(file))
        files.write_whole(file, (_MARK if content.startswith(_MARK) else b"") + written.encode(), durable=True)
    except OSError as error:
        raise SettingsError(f"cannot write the settings: {error.strerror}", where=path) from error


def with_entry(text: str, section: str, name: str, value: str) -> str:
    """Return a settings file's text with `name: value` added to a section. Raises ContentError."""
    before = parse_mapping(text)
    node = before.pairs.get(section)
    if isinstance(node, Fields) and name in node.pairs:
        what = f"{section}.{name} is already set"
        raise ContentError(what, line=node.pairs[name].line, hint="change it in your editor")
    changed = _inserted(text, node, section, f"{name}: {value}")
    if changed is None or not _adds(changed, before, section, parse_mapping(f"{name}: {value}")):
        line = node.line if node else None
        hint = f"{_BY_HAND}: {section}: {{{name}: {value}}}"
        raise ContentError(f"cannot add to {section} in its present form", line=line, hint=hint)
    return changed


def _adds(changed: str, before: Fields, section: str, entry: Fields) -> bool:
    """Return whether a text parses as before plus one entry in a section."""
    values = _plain(before)
    try:
        return _plain(parse_mapping(changed)) == {**values, section: {**(values.get(section) or {}), **_plain(entry)}}
    except ContentError:
        return False


def _inserted(text: str, node: Node | None, section: str, entry: str) -> str | None:
    if text and not text.endswith("\n"):
        text += "\n"
    if node is None:
        return f"{text}{chr(10) * bool(text.strip())}{section}:\n  {entry}\n"
    if not isinstance(node, Fields) and not (isinstance(node, Text) and node.is_nothing):
        return None
    lines = text.split("\n")
    at = node.line - 1
    if isinstance(node, Fields) and node.pairs:
        first = min(child.line for child in node.pairs.values()) - 1
        if first > at:
            indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
            return "\n".join([*lines[:first], indent + entry, *lines[first:]])
        lines[at] = re.sub(r"^([^{]*\{)", lambda match: f"{match[1]}{entry}, ", lines[at], count=1)
        return "\n".join(lines)
    # An empty section: `roles:`, `roles: ~`, `roles: {}`.
    head = re.match(rf"""(["']?{re.escape(section)}["']?\s*:)(?:\s*(?:~|null|\{{\s*\}}))?(\s+#.*)?\s*$""", lines[at])
    if head is None:
        return None
    return "\n".join([*lines[:at], head[1] + (head[2] or ""), f"  {entry}", *lines[at + 1 :]])


def _plain(node: Node) -> Any:
    """Return the values without line numbers."""
    match node:
        case Fields():
            return {name: _plain(child) for name, child in node.pairs.items()}
        case Items():
            return [_plain(item) for item in node.items]
        case Text():
            return None if node.is_nothing else node.value
