"""The text of a preset file: its two parts, and how an editor reads and writes it."""

from __future__ import annotations

import os
import re

from msgspec import Struct

from ..config.yaml_tree import Fields, decode_utf8, parse_mapping, read_content
from ..errors import ContentError, PresetError
from ..system import files

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)


class Markdown(Struct, frozen=True):
    fields: Fields | None
    """None without frontmatter."""
    body: str
    """As written, without surrounding blank lines."""


def split_markdown(text: str) -> Markdown:
    """Parse the fields between the first two `---` lines, and the text below.

    Raises ContentError if the second `---` is missing or the fields are invalid, with line numbers of the file.
    """
    span = frontmatter_span(text)
    if span is None:
        return Markdown(None, without_blank_ends(text))
    begin, end = span
    fields = parse_mapping(text[begin:end], first_line=2)
    return Markdown(fields, without_blank_ends(text[text.index("---", end) + 3 :]))


def frontmatter_span(text: str) -> tuple[int, int] | None:
    """Return the span of the lines between the first two `---` lines; None if the text does not begin with `---`.

    Raises ContentError if the second `---` is missing.
    """
    opening = _FENCE.match(text)
    if opening is None:
        return None
    closing = _FENCE.search(text, opening.end())
    if closing is None:
        hint = 'close the frontmatter with a line "---" above the prompt'
        raise ContentError("the frontmatter has no end", line=1, hint=hint)
    return min(opening.end() + 1, closing.start()), closing.start()


def without_blank_ends(text: str) -> str:
    """Remove blank lines at both ends; keep the first line's indent and trailing spaces."""
    start = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    end = text.find("\n", max(start, len(text.rstrip())))
    return text[start:] if end < 0 else text[start:end]


# --- for editors -----------------------------------------------------------------------------------------------------

_MARK = b"\xef\xbb\xbf"
"""The byte order mark that some editors write before UTF-8."""

GONE = b""
"""Content of a missing file; an empty file counts as missing."""


class FileChanged(PresetError):
    """The file has changed since it was read."""

    def __init__(self, path: str, content: bytes) -> None:
        what = (
            "the file was deleted by another program" if content == GONE else "the file was changed by another program"
        )
        super().__init__(what, where=path, hint="nothing was written")
        self.content = content
        """Its current content."""


class PresetText(Struct, frozen=True):
    """A file's bytes, and its text with the format kept apart."""

    content: bytes
    text: str
    """Without byte order mark, with `\\n` line ends; a remaining carriage return ends no line."""
    mark: bool = False
    crlf: bool = False
    """Whether all lines end with `\\r\\n`."""

    def bytes_of(self, text: str) -> bytes:
        """Encode another text in this file's format."""
        written = text.replace("\n", "\r\n") if self.crlf else text
        return (_MARK if self.mark else b"") + written.encode("utf-8", "replace")


def read_preset_text(path: str) -> PresetText:
    """Read a preset file as text, broken or not. Raises PresetError if an editor could not preserve it."""
    try:
        return text_of(read_content(path))
    except FileNotFoundError:
        hint = "it may have been renamed or deleted; rename a file whose name is not UTF-8 in a shell"
        raise PresetError("the file does not exist", where=path, hint=hint) from None
    except ContentError as error:
        raise PresetError(error.what, where=error.within(path), hint=error.hint) from error


def text_of(content: bytes) -> PresetText:
    """Decode a preset. Raises ContentError if it is not UTF-8."""
    text = decode_utf8(content)
    crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    return PresetText(content, text.replace("\r\n", "\n") if crlf else text, content.startswith(_MARK), crlf)


def content_now(path: str) -> bytes:
    """Return the file's bytes, or `GONE` if it is missing. Raises PresetError."""
    try:
        return read_content(path)
    except FileNotFoundError:
        return GONE
    except ContentError as error:
        raise PresetError(error.what, where=path, hint=error.hint) from error


def write_preset_text(path: str, content: bytes, *, before: bytes) -> None:
    """Replace a preset's file atomically; permissions and links are kept.

    `before` is the content read earlier: raises FileChanged if the file differs now, and PresetError if it cannot be
    written.
    """
    now = content_now(path)
    if now != before:
        raise FileChanged(path, now)
    file = os.path.realpath(path)
    try:
        files.make_private_directory(os.path.dirname(file))
        files.write_whole(file, content, durable=True)
    except OSError as error:
        hint = "check disk space and the directory's permissions; nothing was changed"
        raise PresetError(f"cannot write the preset: {error.strerror}", where=path, hint=hint) from error
