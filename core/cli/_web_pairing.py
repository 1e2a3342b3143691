"""What the commands of the reply page share: the text that pairs a device, and where its certificates are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from ..errors import RunnerUnavailable
from ..paths import user_settings_file
from ..system.imports import StandIn, import_light
from .output import Coloured, is_terminal

_BORDER = 2
"""Modules around the code."""
_BLOCKS = {(0, 0): " ", (0, 1): "▄", (1, 0): "▀", (1, 1): "█"}
"""By the darkness of two modules, the upper one first."""
_BLACK_ON_WHITE, _USUAL = "\x1b[38;5;16;48;5;231m", "\x1b[0m"
"""Cameras expect a dark code on a light ground, also if the terminal is dark."""


def check_installed() -> None:
    """Raise RunnerUnavailable if the packages of the extra are missing."""
    for package in ("tornado", "segno"):
        if find_spec(package) is None:
            what = f"the reply page needs the package {package}, which is not installed"
            raise RunnerUnavailable(what, hint='pip install "subdeck[web]"')


def certificates_dir() -> str:
    """Return where `subdeck web keys` creates certificates, and `subdeck web` finds them."""
    return os.path.join(os.path.dirname(user_settings_file()), "web")


def pairing_url(origin: str, code: str) -> str:
    return f"{origin}/pair?code={code}"


def pairing(origin: str, code: str) -> Iterator[str]:
    """Yield how long the link lasts, the link, and on a terminal its QR code in lines."""
    url = pairing_url(origin, code)
    yield "Pair a device, once and within five minutes:"
    yield url  # on its own line, which fits into 80 columns
    if is_terminal(sys.stdout):
        yield from (Coloured(f"{_BLACK_ON_WHITE}{line}{_USUAL}") for line in qr_code(url))


def qr_code(text: str) -> Iterator[str]:
    """Yield the lines of a QR code, in black on white; a line has two rows of modules."""
    import_light("segno", StandIn("segno.writers"))  # for files; they take a megabyte, which the server would keep
    import segno

    matrix = segno.make(text, error="l", micro=False).matrix
    empty = [0] * (len(matrix[0]) + 2 * _BORDER)
    rows = [[0] * _BORDER + list(row) + [0] * _BORDER for row in matrix]
    rows = [*[empty] * _BORDER, *rows, *[empty] * _BORDER, empty]
    for upper, lower in zip(rows[::2], rows[1::2], strict=False):
        yield "".join(_BLOCKS[above, below] for above, below in zip(upper, lower, strict=True))
