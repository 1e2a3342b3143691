"""Names of files as text: as they are where that is harmless, else quoted as git quotes them.

A name may hold any byte but the null byte. What is quoted here can be written as JSON and shown, and can be taken back:
`worded(name_of(word))` also makes it of a name in the head of a patch, where git leaves in what is no UTF-8.
"""

from __future__ import annotations

import os
import re

_PLAIN = re.compile(r'[^\x00-\x1f"\\\x7f\udc80-\udcff]*')
"""Without control characters, quotes, and what stands for a byte that is no UTF-8."""
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
    """Return the name that a word stands for, whether it is quoted or not."""
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
