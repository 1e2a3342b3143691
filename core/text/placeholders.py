"""Let an editor hold what no screen can show, and get back exactly what was there; pure.

Each unsafe character becomes one of the last private plane, so that a line of the editor is a line of the file, a cell
is a character, and nothing raw reaches the terminal.
"""

from __future__ import annotations

import re

from .plain import UNSAFE

_PLANE = 0x100000
_PLACEHOLDER = r"[\U00100000-\U0010ffff]"
_PICTURES = 0x2400
"""Where Unicode has a picture of each ASCII control character."""


def can_encode(text: str) -> bool:
    """Whether the private plane is free in this text."""
    return re.search(_PLACEHOLDER, text) is None


def encode(text: str) -> str:
    """Put a placeholder where each unsafe character is."""
    return re.sub(UNSAFE, lambda found: chr(_PLANE + ord(found[0])), text)


def decode(text: str) -> str:
    """Put the characters back."""
    return re.sub(_PLACEHOLDER, lambda found: chr(ord(found[0]) - _PLANE), text)


def display(text: str) -> str:
    """Return an encoded text with a picture for each placeholder: `␛`, else `·`."""
    return re.sub(_PLACEHOLDER, lambda found: _picture(ord(found[0]) - _PLANE), text)


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else "·"
