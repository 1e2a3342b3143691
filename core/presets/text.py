"""The text of one preset file: its two halves, and how an editor reads and writes it."""

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
    """None when the file has no frontmatter."""
    body: str
    """As written, without the blank lines around it."""


def split_markdown(text: str) -> Markdown:
    """Read the fields between the first two `---` lines, and the text below them.

    Raises ContentError when the second `---` is missing or the fields are not valid; lines count from the file's
    first one.
    """
    span = frontmatter_span(text)
    if span is None:
        return Markdown(None, without_blank_ends(text))
    begin, end = span
    fields = parse_mapping(text[begin:end], first_line=2)
    return Markdown(fields, without_blank_ends(text[text.index("---", end) + 3 :]))


def frontmatter_span(text: str) -> tuple[int, int] | None:
    """Return where the lines between the first two `---` lines begin and end; None for a text that begins otherwise.

    Raises ContentError when the second `---` is missing.
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
    """Drop blank lines at both ends; the indent of the first line and the spaces after the last word stay."""
    start = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    end = text.find("\n", max(start, len(text.rstrip())))
    return text[start:] if end < 0 else text[start:end]


# --- as an editor needs it -------------------------------------------------------------------------------------------

_MARK = b"\xef\xbb\xbf"
"""The byte order mark that some editors put at the beginning of UTF-8."""

GONE = b""
"""The content of a file that is not there; one that is empty does not matter either."""


class FileChanged(PresetError):
    """The file is not what it was when it was read."""

    def __init__(self, path: str, content: bytes) -> None:
        what = (
            "the file was deleted by another program" if content == GONE else "the file was changed by another program"
        )
        super().__init__(what, where=path, hint="nothing was written")
        self.content = content
        """As it is now."""


class PresetText(Struct, frozen=True):
    """A file's bytes, and what of them stays out of the text."""

    content: bytes
    text: str
    """Without byte order mark, its lines ended by `\\n`; a carriage return in it is one that ends no line."""
    mark: bool = False
    crlf: bool = False
    """Whether all of its lines end in `\\r\\n`."""

    def bytes_of(self, text: str) -> bytes:
        """Write another text as this one was written."""
        written = text.replace("\n", "\r\n") if self.crlf else text
        return (_MARK if self.mark else b"") + written.encode("utf-8", "replace")


def read_preset_text(path: str) -> PresetText:
    """Read a preset file as text, broken or not. Raises PresetError for what no text editor of ours could keep."""
    try:
        return text_of(read_content(path))
    except FileNotFoundError:
        hint = "it may have been renamed or deleted; rename a file whose name is not UTF-8 in a shell"
        raise PresetError("the file does not exist", where=path, hint=hint) from None
    except ContentError as error:
        raise PresetError(error.what, where=error.within(path), hint=error.hint) from error


def text_of(content: bytes) -> PresetText:
    """Decode a preset; raise ContentError for what is not UTF-8."""
    text = decode_utf8(content)
    crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    return PresetText(content, text.replace("\r\n", "\n") if crlf else text, content.startswith(_MARK), crlf)


def content_now(path: str) -> bytes:
    """Return the bytes of the file, `GONE` where there is none. Raises PresetError."""
    try:
        return read_content(path)
    except FileNotFoundError:
        return GONE
    except ContentError as error:
        raise PresetError(error.what, where=path, hint=error.hint) from error


def write_preset_text(path: str, content: bytes, *, before: bytes) -> None:
    """Replace a preset's file at once, or not at all; its rights stay, and a link stays a link.

    `before` is what was read from it: raises FileChanged where it holds something else by now, and PresetError where
    it cannot be written.
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
