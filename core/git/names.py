"""File names as text: unchanged if that is harmless, otherwise quoted as git quotes them.

A name may hold any byte except null. A quoted name can be written as JSON and shown, and converted back.
`worded(name_of(word))` also quotes names from a patch header, where git leaves invalid UTF-8.
"""

from __future__ import annotations

import os
import re

_PLAIN = re.compile(r'[^\x00-\x1f"\\\x7f\udc80-\udcff]*')
"""Text without control characters, quotes, backslashes, and surrogates for invalid UTF-8."""
_NAMED = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
_BYTES = {name: bytes((code,)) for code, name in _NAMED.items()}


def worded(name: bytes) -> str:
    """Return a name as text."""
    text = name.decode("utf-8", "surrogateescape")
    if _PLAIN.fullmatch(text):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if code in _NAMED:
        return "\\" + _NAMED[code]
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\{code - 0xDC00:03o}"
    return f"\\{code:03o}" if code < 0x20 or code == 0x7F else character


def name_of(word: str) -> bytes:
    """Return the file name for a word, quoted or not."""
    if len(word) < 2 or not word[0] == word[-1] == '"':
        return os.fsencode(word)
    parts = re.split(r'\\([0-7]{3}|["\\abfnrtv])', word[1:-1])
    name = b""
    for number, part in enumerate(parts):
        if number % 2 == 0:
            name += os.fsencode(part)
        else:
            name += _BYTES[part] if part in _BYTES else bytes((int(part, 8) & 0xFF,))
    return name
