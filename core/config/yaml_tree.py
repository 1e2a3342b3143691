"""Reads small YAML texts: settings files and the frontmatter of presets.

Every scalar keeps its text (`off`, `yes`, `1e3`) and line, so that the code that knows the key decides its meaning. The
tree is built from the parser's events, because libyaml's composer recurses in C: half a million `[` in an untrusted
checkout's file would crash the process.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct

from ..errors import ContentError
from ..system.directory import RefusedError
from ..system.files import open_regular

SIZE_LIMIT = 1024 * 1024
"""Bytes; larger files are not read."""

_DEEPEST = 16


class Text(Struct, frozen=True):
    value: str
    line: int
    """Line of the key, for the value of a mapping."""
    quoted: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether it is empty, `~` or `null`, as YAML defines them."""
        return not self.quoted and self.value in ("", "~", "null")


class Items(Struct, frozen=True):
    items: tuple[Node, ...]
    line: int


class Fields(Struct, frozen=True):
    pairs: dict[str, Node]
    line: int


Node = Text | Items | Fields


class RepeatedKey(ContentError):
    """A mapping has a key twice."""

    def __init__(self, key: str, first: int, line: int) -> None:
        super().__init__(f'"{key}" appears twice, first on line {first}', line=line)
        self.key = key


def read_text(path: str) -> str:
    """Read a text file of at most `SIZE_LIMIT` bytes, without byte order mark and with `\\n` line ends.

    Raises ContentError with a message for a person; FileNotFoundError only if the name does not exist.
    """
    return decode(read_content(path))


def read_content(path: str) -> bytes:
    """Read the bytes of such a file, in any encoding; raise as `read_text` does."""
    try:
        descriptor, status = open_regular(path, follow=True)
        with open(descriptor, "rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except RefusedError as error:
        if error.errno == errno.ENOTDIR:  # a file named .pi is not subdeck's
            raise FileNotFoundError(path) from None
        raise ContentError(f"{error.strerror}") from None
    except FileNotFoundError:
        if os.path.islink(path):
            raise ContentError(f"the file is a link to {os.readlink(path)}, which does not exist") from None
        raise
    except NotADirectoryError:
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise ContentError(f"cannot read the file: {error.strerror}") from error
    check_size(max(status.st_size, len(content)))
    return content


def check_size(size: int) -> None:
    """Raise ContentError if a text is larger than `SIZE_LIMIT`."""
    if size > SIZE_LIMIT:
        raise ContentError(f"the file is too large: {size / SIZE_LIMIT:.1f} MB (limit 1 MB)")


def decode(content: bytes) -> str:
    """Return the text of a file's bytes, without byte order mark and with `\\n` line ends. Raises ContentError."""
    text = decode_utf8(content)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ContentError("the file contains a NUL character", line=line, hint="remove that character")
    return text.replace("\r\n", "\n")


def decode_utf8(content: bytes) -> str:
    """Return the text of a file's bytes, without byte order mark but otherwise unchanged. Raises ContentError."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ContentError("the file is not UTF-8 text", line=line, hint="save it as UTF-8") from error


def parse_mapping(text: str, *, first_line: int = 1) -> Fields:
    """Parse a YAML mapping; a text with only comments is empty.

    `first_line` is the text's first line in its file. Raises ContentError, also for YAML that does not mean what it
    seems to: a repeated key, an anchor, a second document.
    """
    if (plain := _plain_fields(text, first_line)) is not None:
        return plain
    import yaml

    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    events = cast("Iterator[Any]", yaml.parse(text, Loader=loader))
    try:
        node = _Builder(events, first_line).document()
    except yaml.MarkedYAMLError as error:
        raise _explained(error, text, first_line) from error
    except yaml.YAMLError as error:
        control = re.search(_CONTROL, text)
        line = text.count("\n", 0, control.start()) + first_line if control else None
        raise ContentError("the file contains a control character", line=line, hint="remove that character") from error
    if node is None or (isinstance(node, Text) and node.is_nothing):
        return Fields({}, first_line)
    if isinstance(node, Fields):
        return node
    found = "a list" if isinstance(node, Items) else "a plain text"
    raise ContentError(f'expected lines of the form "key: value" but found {found}', line=node.line)


_PLAIN_FIELD = re.compile(r"([A-Za-z_][\w-]{0,60}): +([^\W_](?:[\w ,;./()+*@!?=$^~&<>'\"-]|:(?=\w))*)$", re.ASCII)


def _plain_fields(text: str, first_line: int) -> Fields | None:
    """Read lines that are all `key: plain words`, like most frontmatter; return None if a YAML parser is needed.

    Loading one takes 9 ms, a fifth of the time until a launch starts its agent.
    """
    pairs: dict[str, Node] = {}
    for number, line in enumerate(text.split("\n"), first_line):
        if not line:
            continue
        field = _PLAIN_FIELD.match(line)
        if field is None or field[1] in pairs:
            return None
        pairs[field[1]] = Text(field[2].rstrip(" "), number)
    return Fields(pairs, first_line)


class _Builder:
    """Builds the tree from the parser's events."""

    def __init__(self, events: Iterator[Any], first_line: int) -> None:
        self._events = events
        self._first_line = first_line

    def document(self) -> Node | None:
        node: Node | None = None
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent" and node is not None:
                raise ContentError("a second document begins here", line=self._line(event), hint="remove it")
            if kind in ("ScalarEvent", "SequenceStartEvent", "MappingStartEvent", "AliasEvent"):
                node = self._node(event, depth=0)
        return node

    def _line(self, event: Any) -> int:
        return event.start_mark.line + self._first_line

    def _node(self, event: Any, *, depth: int, line: int | None = None) -> Node:
        line = self._line(event) if line is None else line
        kind = type(event).__name__
        if kind == "AliasEvent" or event.anchor is not None:
            raise ContentError("anchors and aliases (& and *) are not supported", line=line, hint=_QUOTE)
        if depth > _DEEPEST:
            raise ContentError("the file is nested too deeply", line=line)
        if kind == "SequenceStartEvent":
            return Items(tuple(self._node(item, depth=depth + 1) for item in self._until("SequenceEndEvent")), line)
        if kind == "MappingStartEvent":
            return Fields(self._pairs(depth), line)
        if "\0" in event.value:
            raise ContentError("a value contains a NUL character", line=line, hint="remove that character")
        return Text(event.value, line, quoted=bool(event.style))

    def _pairs(self, depth: int) -> dict[str, Node]:
        pairs: dict[str, Node] = {}
        for event in self._until("MappingEndEvent"):
            line = self._line(event)
            key = self._node(event, depth=depth + 1)
            if not isinstance(key, Text):
                raise ContentError("a key must be plain text", line=line, hint=_QUOTE)
            if key.value in pairs:
                first = pairs[key.value].line
                raise RepeatedKey(key.value, first, line)
            pairs[key.value] = self._node(next(self._events), depth=depth + 1, line=line)
        return pairs

    def _until(self, end: str) -> Iterator[Any]:
        for event in self._events:
            if type(event).__name__ == end:
                return
            yield event


_QUOTE = 'put quotes around the value: key: "…"'
_CONTROL = r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Characters that YAML forbids; not compiled here, which takes 4 ms."""

_BARE_ROLE = r"(?:[:\-,\[]\s*|^\s*)(@[^\s,\]}#]*)"


def _explained(error: Any, text: str, first_line: int) -> ContentError:
    """Turn a parser's error into a message, with a hint if the line shows a common mistake."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return ContentError(f"invalid YAML: {error.problem}")
    source: str = "".join(text.split("\n")[mark.line : mark.line + 1])
    hint = ""
    if role := re.search(_BARE_ROLE, source):
        hint = f'put quotes around it: "{role[1]}"'
    elif "\t" in source[: len(source) - len(source.lstrip())]:
        hint = "indent with spaces, not with tabs"
    elif any(words in error.problem for words in ("mapping values", "cannot start any token", "alphabetic or numeric")):
        hint = _QUOTE
    return ContentError(f"invalid YAML: {error.problem}", line=mark.line + first_line, hint=hint)
