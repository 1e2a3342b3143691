"""Sanitize untrusted text for display or editing: no control sequence, no line break in a single line.

Agents, tool output, task texts and file names may contain anything. Text for a screen, a terminal or a log for people
goes through here first; authoritative files (`events.jsonl`, `prompt.md`) do not.
"""

from __future__ import annotations

import re

# `re.sub` compiles these at first use: together half a millisecond that few processes need.
_SEQUENCES = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS and their kin
    r"|\x1b[ -/]*[0-~]?"  # the other escapes
)
UNSAFE = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""A pattern for control characters but tab and newline, invisible marks, marks that reorder the text around them, tags,
which hide ASCII, and halves of surrogate pairs; the only list of characters that must not reach a terminal.
"""


def _is_safe(text: str) -> bool:
    """Return whether the lines of a text are printable to Python, so that their only blank is the space and they have
    no control character, direction mark or surrogate. It needs no pattern: a wrapper that starts an agent compiles
    none.
    """
    return text.isprintable() or text.replace("\n", "").isprintable()


def plain(text: str) -> str:
    """Strip control sequences and characters; keep newlines, turn tabs into four spaces and CR LF into LF."""
    if _is_safe(text):
        return text
    return disarmed(text.replace("\t", "    "))


def disarmed(text: str) -> str:
    """Strip the same, but keep tabs, which belong to an answer that someone will work with."""
    if _is_safe(text):
        return text
    return re.sub(UNSAFE, "", re.sub(_SEQUENCES, "", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int | None = None) -> str:
    """Fold text into one plain line; with a limit, cut it to that many characters, the last one being `…`."""
    if (limit is None or len(text) <= limit) and "  " not in text and text.isprintable():
        return text.strip()  # nearly every name and short sentence
    if limit is not None:
        # Of a long text the beginning is enough, if nothing in it has to be removed.
        head = text[: limit + 2].replace("\n", " ").rstrip(" ")
        if len(head) > limit and head[0] != " " and "  " not in head and head.isprintable():
            return head[: max(0, limit - 1)].rstrip() + "…"
        text = text[: limit * 4 + 64]
    is_clean = text.isprintable()
    line = (text if is_clean else plain(text).replace("\n", " ")).strip()
    # Most lines are done by now; others may have whitespace beyond ASCII.
    if "  " in line or not (is_clean or line.isascii()):
        line = " ".join(line.split())
    return line if limit is None else shortened(line, limit)


def shortened(line: str, limit: int) -> str:
    """Cut a plain line to so many characters, the last one being `…`."""
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


_PLANE = 0x100000
"""The last private plane of Unicode, where each unsafe character has a placeholder."""
_TAGS = range(0xE0000, 0xE0080)
"""The only ones beyond sixteen bits; they get the placeholders of private characters, which are all safe."""
_TAGS_THERE = range(0xE000, 0xE080)
_PLACEHOLDER = r"[\U00100000-\U0010ffff]"
_PICTURES = 0x2400
"""Start of Unicode's pictures of the ASCII control characters."""


def can_encode_unsafe(text: str) -> bool:
    """Return whether `encode_unsafe` can be reversed: no character of this text is a placeholder already."""
    return re.search(_PLACEHOLDER, text) is None


def encode_unsafe(text: str) -> str:
    """Replace each unsafe character by a placeholder, so that an editor can hold the text and return it."""
    return re.sub(UNSAFE, lambda match: _placeholder(ord(match[0])), text)


def decode_unsafe(text: str) -> str:
    """Restore the unsafe characters."""
    return re.sub(_PLACEHOLDER, lambda match: chr(_code(match[0])), text)


def display_encoded(text: str) -> str:
    """Return an encoded text with a picture for each placeholder: `␛`, otherwise `·`."""
    return re.sub(_PLACEHOLDER, lambda match: _picture(_code(match[0])), text)


def _placeholder(code: int) -> str:
    return chr(_PLANE + (_TAGS_THERE[code - _TAGS.start] if code in _TAGS else code))


def _code(placeholder: str) -> int:
    code = ord(placeholder) - _PLANE
    return _TAGS[code - _TAGS_THERE.start] if code in _TAGS_THERE else code


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else "·"
