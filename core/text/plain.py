"""Make untrusted text fit to be shown or edited: no control sequence, no line break where a line is meant.

Child agents, tool output, task texts and file names may hold anything. What reaches a screen, a log for people or a
terminal goes through here first; files that keep the truth (`events.jsonl`, `prompt.md`) do not.
"""

from __future__ import annotations

import re

# Compiled at their first use, by `re.sub`: together half a millisecond that few processes need.
_SEQUENCES = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS and their kin
    r"|\x1b[ -/]*[0-~]?"  # the other escapes
)
UNSAFE = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""A pattern for control characters but tab and newline, invisible marks, those that reorder the text around them, tags,
which hide ASCII, and halves of surrogate pairs; the one list of what must not reach a terminal."""


def _is_safe(text: str) -> bool:
    """Whether it is what Python calls printable, as which it has no control, no mark of direction, no surrogate and no
    blank but the space; or ASCII in lines. Without a pattern: a wrapper that starts a child loads none.
    """
    return text.isprintable() or (text.isascii() and text.replace("\n", "").isprintable())


def plain(text: str) -> str:
    """Strip control sequences and characters; keep newlines, turn tabs into four spaces and CR LF into LF."""
    if _is_safe(text):
        return text
    return disarmed(text.replace("\t", "    "))


def disarmed(text: str) -> str:
    """Strip the same, but keep tabs, which are part of an answer that somebody works on with."""
    if _is_safe(text):
        return text
    return re.sub(UNSAFE, "", re.sub(_SEQUENCES, "", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int | None = None) -> str:
    """Fold text into one plain line; with a limit, cut it to that many characters, the last one being `…`."""
    if (limit is None or len(text) <= limit) and "  " not in text and text.isprintable():
        return text.strip()  # as nearly every name and short sentence is
    if limit is not None:
        # Of a long text the beginning is enough, where nothing in it has to be taken out.
        head = text[: limit + 2].replace("\n", " ").rstrip(" ")
        if len(head) > limit and head[0] != " " and "  " not in head and head.isprintable():
            return head[: max(0, limit - 1)].rstrip() + "…"
        text = text[: limit * 4 + 64]
    is_clean = text.isprintable()
    line = (text if is_clean else plain(text).replace("\n", " ")).strip()
    # Most lines are done by now; what was not printable may have other kinds of blanks, beyond ASCII.
    if "  " in line or not (is_clean or line.isascii()):
        line = " ".join(line.split())
    return line if limit is None else shortened(line, limit)


def shortened(line: str, limit: int) -> str:
    """Cut a plain line to so many characters, the last one being `…`."""
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


_PLANE = 0x100000
"""The last private plane of Unicode, where each unsafe character has a placeholder."""
_TAGS = range(0xE0000, 0xE0080)
"""They alone are beyond sixteen bits, and get the placeholders of private characters, none of which is unsafe."""
_TAGS_THERE = range(0xE000, 0xE080)
_PLACEHOLDER = r"[\U00100000-\U0010ffff]"
_PICTURES = 0x2400
"""Where Unicode has a picture of each ASCII control character."""


def can_encode_unsafe(text: str) -> bool:
    """Whether `encode_unsafe` can be taken back: no character of this text is a placeholder already."""
    return re.search(_PLACEHOLDER, text) is None


def encode_unsafe(text: str) -> str:
    """Put a placeholder where each unsafe character is, so that an editor can hold the text and give it back."""
    return re.sub(UNSAFE, lambda found: _placeholder(ord(found[0])), text)


def decode_unsafe(text: str) -> str:
    """Put the characters back."""
    return re.sub(_PLACEHOLDER, lambda found: chr(_code(found[0])), text)


def display_encoded(text: str) -> str:
    """Return an encoded text with a picture for each placeholder: `␛`, else `·`."""
    return re.sub(_PLACEHOLDER, lambda found: _picture(_code(found[0])), text)


def _placeholder(code: int) -> str:
    return chr(_PLANE + (_TAGS_THERE[code - _TAGS.start] if code in _TAGS else code))


def _code(placeholder: str) -> int:
    code = ord(placeholder) - _PLANE
    return _TAGS[code - _TAGS_THERE.start] if code in _TAGS_THERE else code


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else "·"
