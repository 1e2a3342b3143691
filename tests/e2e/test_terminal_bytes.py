"""The bytes that reach a terminal: the window's title, and no colour if it is unwanted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK

from .terminal import ESC, Pty

pytestmark = pytest.mark.processes

COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")
ATTRIBUTES = {b"", b"0", b"1", b"2", b"3", b"4", b"7", b"9", b"22", b"23", b"24", b"27", b"29"}
"""Numbers of SGR that are not colours."""


def colours(written: bytes) -> set[bytes]:
    """Return the SGR numbers that are colours."""
    numbers = {number for found in COLOUR.findall(written) for number in re.split(rb"[;:]", found[2:-1])}
    return numbers - ATTRIBUTES


def test_the_title_of_the_window(shop: Path) -> None:
    """It is saved, set to the running runs, and restored at the end."""
    app = Pty(SUBDECK, shop)
    app.until("\x1b]2;subdeck – 0 running – ~/src/shop\x07".encode())
    assert 0 == app.end()
    assert app.written.index(b"\x1b[22;0t") < app.written.index(b"\x1b]2;subdeck")
    assert app.written.endswith(b"\x1b]2;\x07\x1b[23;0t")
    assert colours(app.written)


def test_no_title_where_there_is_no_window(shop: Path) -> None:
    """A console gets no sequence that it does not know, nor does a user who turned it off."""
    app = Pty(SUBDECK, shop, TERM="linux")
    app.until(b"repo-scout")
    assert 0 == app.end()
    assert b"\x1b]2;" not in app.written and b"\x1b[22;0t" not in app.written


def test_no_colour_reaches_the_terminal(shop: Path) -> None:
    """With NO_COLOR the deck, the help and a dialog are drawn only with bold, dim and reversed text."""
    app = Pty(SUBDECK, shop, NO_COLOR="1")
    app.until(b"offline")
    app.press(b"?")
    app.until(b"Keys")
    app.press(ESC)
    app.until(b"repo-scout")
    app.press(b"N")
    app.until(b"Model")
    app.press(ESC)
    app.until(b"repo-scout")
    assert 0 == app.end()
    assert colours(app.written) == set()
    assert b"\x1b[7m" in app.written or b";7m" in app.written


def test_an_unknown_run(shop: Path) -> None:
    """`--run` with an unknown id is an error before anything is drawn."""
    app = Pty([*SUBDECK, "--run", "beef"], shop)
    app.until(b'no run matches "beef"')
    assert 2 == app._program.wait(timeout=20)
    assert b"\x1b[?1049h" not in app.written
