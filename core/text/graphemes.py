"""Joiners, selectors and marks in a text: which of them are part of a grapheme that can be seen."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"
_KEYCAP = "\u20e3"
_JOINING = frozenset({"ARABIC", "SYRIAC", "MANDAIC", "NKO", "MONGOLIAN"})
"""Scripts whose letters are joined, by the first word of their names."""
_VIRAMA = 9
"""The combining class of the signs of Indic scripts that join consonants."""
_MOST_MARKS = 8
"""On one letter: real ones have half as many."""
_WESTERN = frozenset({"LATIN", "GREEK", "CYRILLIC"})
"""Scripts whose letters take no marks but the combining ones: those of others may have no ink there."""
_EMOJI = frozenset("‼⁉™ℹ↔↕↖↗↘↙↩↪◽◾⤴⤵〰〽㊗㊙➡➕➖➗")
"""Emoji that are not among the other symbols (So)."""


def shapes(line: str, at: int) -> bool:
    """Whether a joiner or selector stands inside a grapheme that it shapes, as in emoji, Arabic and Indic scripts."""
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
    """Return the character before a position, or the one that its selector or colour of skin belongs to."""
    before = line[max(0, at - 3) : at]
    return before.rstrip("\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")[-1:] or before[-1:]


def _is_emoji(sign: str) -> bool:
    return sign in _EMOJI or (sign > "\u00a8" and unicodedata.category(sign) == "So" and sign != "\u2800")


def _is_joined(line: str, at: int) -> bool:
    """Whether a joiner stands between letters of one script whose shapes depend on it."""
    before, after = _letter(line[max(0, at - 8) : at][::-1]), line[at + 1 : at + 2]
    if not (before and after) or unicodedata.category(after)[0] not in "LM" or _script(before) != _script(after):
        return False
    has_virama = _VIRAMA in (unicodedata.combining(line[at - 1]), unicodedata.combining(after))
    return has_virama or (_script(before) in _JOINING and line[at - 1] not in _JOINERS)


def _letter(backwards: str) -> str:
    """Return the letter before, behind its marks."""
    return next((sign for sign in backwards if unicodedata.category(sign) not in ("Mn", "Me")), "")


def _script(sign: str) -> str:
    return unicodedata.name(sign, "").partition(" ")[0] if unicodedata.category(sign)[0] in "LM" else ""


def is_stray_mark(line: str, at: int) -> bool:
    """Whether a character is a mark of no width that stands on nothing that it could be part of, on a letter that takes
    no marks of its script, or on more marks than letters have.
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
