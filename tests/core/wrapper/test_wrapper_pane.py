"""The output in a pane, beside the files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.run.model import LaunchedBy, PresetSource, Tools
from subdeck.core.wrapper.records import header, pane

from tests.factories import make_meta

pytestmark = pytest.mark.processes


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: the display and the writer."""
    monkeypatch.setattr("subdeck.core.wrapper.records.PANE_PATIENCE", 1)
    ends = os.openpty()
    yield ends
    for end in ends:
        os.close(end)


def drained(screen: int) -> bytes:
    os.set_blocking(screen, False)
    content = b""
    try:
        while True:
            content += os.read(screen, 65536)
    except BlockingIOError:
        return content


def test_text_is_shown(terminal: tuple[int, int]) -> None:
    """Recorded text is shown in the terminal."""
    screen, own = terminal
    pane(own)("Żółw\n".encode())
    assert "Żółw\r\n".encode() == drained(screen)


def test_a_terminal_that_takes_nothing(terminal: tuple[int, int]) -> None:
    """A pane without a reader blocks nothing; once read again, it shows new output."""
    screen, own = terminal
    show = pane(own)
    for _ in range(50):
        show(b"x" * 10_000)
    assert 0 < len(drained(screen)) < 500_000
    show(b"again\n")
    assert b"again" in drained(screen)


def test_a_terminal_that_is_gone() -> None:
    """A closed pane causes no error."""
    screen, own = os.openpty()
    show = pane(own)
    os.close(screen)
    show(b"x")
    os.close(own)


def test_no_terminal(tmp_path: Path) -> None:
    """If the output is not a terminal, nothing is shown."""
    with open(tmp_path / "file", "wb") as file:
        pane(file.fileno())(b"x")
    assert b"" == (tmp_path / "file").read_bytes()


def test_header() -> None:
    """The header has the run's overview, a line per fact, and the beginning of its task, without markup."""
    meta = make_meta(
        preset="scout\x1b[31m\nred",
        preset_source=PresetSource.PROJECT,
        task="\n".join(["look \x1b]0;title\x07around", *["more"] * 100]),
        launched_by=LaunchedBy("operator", "app"),
        tools=Tools("allow", ()),
        resolved_model="fake/puppet",
    )
    text = header(meta)
    assert "\x1b" not in text and "\x07" not in text
    for line in ("Preset:     scout red (project)", "Model:      fake/puppet", "Tools:      none", "look around"):
        assert line in text.splitlines()
    assert "Started by: app, session operator" in text.splitlines()
    assert len(text.splitlines()) < 60
