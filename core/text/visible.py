"""Show every character of a text that the user decides on: nothing is removed, and invisible characters are named.

`plain` strips terminal commands, payload included. A shell strips nothing: it runs the text between ESC and BEL. So
newlines and tabs are laid out here, and every other character without a glyph is shown as its code point, `<U+001B>`.
Joiners and variation selectors that only shape their grapheme stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from .plain import UNSAFE

NEW_LINE = "⏎"
"""Stands for a newline in a single line."""
_TAB = "    "
# `re.search` compiles it at first use.
_UNSEEN = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
"""A pattern for characters that are printable to Python but have no ink: fillers, blank letters, selectors."""
_ESCAPED_END = r"\\[ \t]+$"
"""A pattern for whitespace at the end of a line after a backslash: the line seems to continue, and does not."""
_MARK = r"[^\x00-\u02ff]"
"""A pattern for the blocks that contain combining marks."""


def visible(text: str) -> str:
    """Lay out newlines and tabs, and replace each other invisible character by its code point."""
    return _laid_out(text, "\n", _TAB)


def visible_name(text: str) -> str:
    """Return the same for a path or a name, in which newlines, tabs and outer spaces are named."""
    inner = text.strip(" ")
    before, _, after = text.partition(inner) if inner else (text, "", "")
    shown = _laid_out(inner, _code("\n"), _code("\t"))
    return f"{_code(' ') * len(before)}{shown}{_code(' ') * len(after)}"


def visible_line(text: str, limit: int | None = None) -> str:
    """Return the same in one line; with a limit, cut it to that many characters, with about how many are missing."""
    text = text.strip("\n")
    beyond = 0 if limit is None else max(0, len(text) - limit)
    line = _laid_out(text[:limit] if beyond else text, f" {NEW_LINE} ", _TAB)
    return line if limit is None else _cut(line, limit, beyond)


def _cut(line: str, limit: int, beyond: int) -> str:
    """Cut a line, after which there are more characters, and add how many are missing: `… (+1,234)`."""
    if len(line) <= limit and not beyond:
        return line
    room = max(0, limit - len(f"… (+{len(line) + beyond:,})"))
    return f"{line[:room]}… (+{len(line) - room + beyond:,})"


def recounted(line: str, room: int, measure: Callable[[str], int] = len) -> str:
    """Cut a line that may have been cut before to less room, and add how many characters are missing in all.

    `measure` returns how much room a text takes, as in cells of a terminal.
    """
    if measure(line) <= room:
        return line
    match = re.search(r"… \(\+([\d,]{1,20})\)$", line)
    beyond = int(match[1].replace(",", "")) if match else 0
    body = line[: match.start()] if match else line
    for kept in range(min(len(body), room), 0, -1):
        shorter = f"{body[:kept]}… (+{len(body) - kept + beyond:,})"
        if measure(shorter) <= room:
            return shorter
    return "…"[:room]


def is_hiding(text: str, *, is_file: bool = False) -> bool:
    """Return whether a text has a character that only `visible` shows; in files (`is_file`) CR LF counts as a
    newline.
    """
    lines = (text.replace("\r\n", "\n") if is_file else text).split("\n")
    return any(not _is_seen(line) and any(_hidden(line, "\t", is_file=is_file)) for line in lines)


def is_hiding_name(text: str) -> bool:
    """Return the same for a path or a name, in which newlines and tabs count."""
    return not _is_seen(text) and any(_hidden(text, ""))


def escaped_json(document: str) -> str:
    """Return JSON in which every character that is invisible, or must not reach a terminal, is an escape."""
    document = re.sub(UNSAFE, lambda match: _escape(ord(match[0])), document)
    if is_hiding(document):
        document = re.sub(r"[^\x00-\x7f]", lambda match: _escape_hidden(match[0]), document)
    return document


def _escape_hidden(sign: str) -> str:
    return _escape(ord(sign)) if is_hiding(sign) else sign


def _escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _laid_out(text: str, newline: str, tab: str) -> str:
    if _is_seen(text):
        return text
    return newline.join(line if _is_seen(line) else _line(line, tab) for line in text.split("\n"))


def _is_seen(text: str) -> bool:
    """Return whether a quick check finds nothing to name."""
    if not text.isprintable() or ("\\ " in text and re.search(_ESCAPED_END, text)):
        return False
    return text.isascii() or not (re.search(_UNSEEN, text) or _has_stray_mark(text))


def _has_stray_mark(text: str) -> bool:
    match = re.search(_MARK, text)
    if match is None:
        return False
    return any(is_stray_mark(text, at) for at in range(match.start(), len(text)))


def _line(line: str, tab: str) -> str:
    hidden = zip(line, _hidden(line, "\t"), strict=True)
    return "".join(_code(sign) if is_hidden else tab if sign == "\t" else sign for sign, is_hidden in hidden)


def _hidden(line: str, laid_out: str, *, is_file: bool = False) -> list[bool]:
    """Return for each character whether it is invisible."""
    end = None if is_file else re.search(_ESCAPED_END, line)
    escaped = end.start() + 1 if end else len(line)
    return [
        at >= escaped
        or (
            sign not in laid_out
            and not (sign.isprintable() and re.match(_UNSEEN, sign) is None and not is_stray_mark(line, at))
            and not shapes(line, at)
        )
        for at, sign in enumerate(line)
    ]


def _code(sign: str) -> str:
    return f"<U+{ord(sign):04X}>"


# --- joiners, selectors and marks of graphemes -----------------------------------------------------------------------

_JOINERS = "\u200c\u200d"
_KEYCAP = "\u20e3"
_JOINING = frozenset({"ARABIC", "SYRIAC", "MANDAIC", "NKO", "MONGOLIAN"})
"""Scripts with joined letters, by the first word of their names."""
_VIRAMA = 9
"""The combining class of the signs that join consonants in Indic scripts."""
_MOST_MARKS = 8
"""Marks on one letter: real ones have half as many."""
_WESTERN = frozenset({"LATIN", "GREEK", "CYRILLIC"})
"""Scripts whose letters take only combining marks: marks of other scripts may have no ink there."""
_EMOJI = frozenset("‼⁉™ℹ↔↕↖↗↘↙↩↪◽◾⤴⤵〰〽㊗㊙➡➕➖➗")
"""Emoji that are not among the other symbols (So)."""


def shapes(line: str, at: int) -> bool:
    """Return whether a joiner or selector is inside a grapheme that it shapes, as in emoji, Arabic and Indic
    scripts.
    """
    sign, before, after = line[at], line[max(0, at - 1) : at], line[at + 1 : at + 2]
    if not before:
        return False
    if sign in _JOINERS:
        is_emoji = sign == "\u200d" and after and _is_emoji(_base(line, at)) and _is_emoji(after)
        return bool(is_emoji) or _is_joined(line, at)
    if sign in "\ufe0e\ufe0f":
        return _is_emoji(before) or (before in "0123456789#*" and after == _KEYCAP)
    if "\ufe00" <= sign <= "\ufe02" or sign >= "\U000e0100":
        return unicodedata.name(before, "").startswith("CJK ")
    is_letter = unicodedata.category(before)[0] == "L" and _script(before) == "MONGOLIAN"
    return "\u180b" <= sign <= "\u180f" and sign != "\u180e" and is_letter


def _base(line: str, at: int) -> str:
    """Return the character before a position, or the base of its selector or skin tone."""
    before = line[max(0, at - 3) : at]
    return before.rstrip("\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")[-1:] or before[-1:]


def _is_emoji(sign: str) -> bool:
    return sign in _EMOJI or (sign > "\u00a8" and unicodedata.category(sign) == "So" and sign != "\u2800")


def _is_joined(line: str, at: int) -> bool:
    """Return whether a joiner is between letters of one script whose shapes depend on it."""
    before, after = _letter(line[max(0, at - 8) : at][::-1]), line[at + 1 : at + 2]
    if not (before and after) or unicodedata.category(after)[0] not in "LM" or _script(before) != _script(after):
        return False
    has_virama = _VIRAMA in (unicodedata.combining(line[at - 1]), unicodedata.combining(after))
    return has_virama or (_script(before) in _JOINING and line[at - 1] not in _JOINERS)


def _letter(backwards: str) -> str:
    """Return the letter before, skipping its marks."""
    return next((sign for sign in backwards if unicodedata.category(sign) not in ("Mn", "Me")), "")


def _script(sign: str) -> str:
    return unicodedata.name(sign, "").partition(" ")[0] if unicodedata.category(sign)[0] in "LM" else ""


def is_stray_mark(line: str, at: int) -> bool:
    """Return whether a character is a zero-width mark on nothing that it could be part of, on a letter that takes no
    marks of its script, or on more marks than letters have.
    """
    if line[at] < "\u0300" or not _is_mark(line[at]):
        return False
    before = line[max(0, at - _MOST_MARKS) : at][::-1]
    base = next((sign for sign in before if not _is_mark(sign)), " ")
    kind = unicodedata.category(base)[0]
    if not (kind in "LMN" or (kind == "S" and not base.isascii()) or base in "#*" or base in _JOINERS):
        return True
    is_western = base.isascii() or _script(base) in _WESTERN
    return is_western and "COMBINING" not in unicodedata.name(line[at], "")


def _is_mark(sign: str) -> bool:
    return sign >= "\u0300" and unicodedata.category(sign) in ("Mn", "Me")
