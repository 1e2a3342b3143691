"""Let an editor hold what no screen can take, and get back exactly what was there; pure.

Control characters, marks that reorder the text around them and the rarer line ends become characters of the last
private plane, one each, so that a line of an editor is a line of the file and nothing raw reaches the terminal.
"""

from __future__ import annotations

import re

_UNFIT = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
"""What `plain` takes out, and the carriage return."""

_PLANE = 0x100000
_HELD = r"[\U00100000-\U0010ffff]"
_PICTURES = 0x2400
"""Where Unicode has a picture of each ASCII control character."""


def can_hold(text: str) -> bool:
    """Whether the private plane is free in this text."""
    return re.search(_HELD, text) is None


def held(text: str) -> str:
    """Put the stand-ins where the characters are."""
    return re.sub(_UNFIT, lambda found: chr(_PLANE + ord(found[0])), text)


def released(text: str) -> str:
    """Put the characters back."""
    return re.sub(_HELD, lambda found: chr(ord(found[0]) - _PLANE), text)


def shown(text: str) -> str:
    """Return what the screen shows of a held text, a cell for each stand-in: `␛`, else `·`."""
    return re.sub(_HELD, lambda found: _picture(ord(found[0]) - _PLANE), text)


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else "·"
