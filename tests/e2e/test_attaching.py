"""Attaching to the pane of a run and coming back, from anywhere the app may run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK
from tests.factories import write_settings

from .acts import SLOW, launch, quit_app
from .conftest import OpenApp
from .terminal import Terminal

pytestmark = pytest.mark.tmux

OUTSIDE = ("env", "-u", "TMUX")
PANE = ("Preset:     watcher (project)", "Started by: app, session operator")
"""Shown only in the run's pane."""


@pytest.fixture(autouse=True)
def puppet(home: Path) -> None:
    """The child does what the task says, so that it ends when the test wants it to."""
    write_settings()


def watcher_in(app: Terminal) -> None:
    """Launch a run that stays in its pane, and wait until the app shows it."""
    launch(app, SLOW, preset="watcher")
    app.until_shown("● ", "watcher ▸", "I am looking at the shop▋")


def is_painted_and_alive(app: Terminal) -> None:
    """The app is complete again: painted, followed, with working mouse and paste."""
    app.until_shown("subdeck  ~/src/shop", "● ", "I am looking at the shop▋", "bg: 1 running / 1 total")
    app.press("1")
    app.until_shown("repo-scout")
    row = next(number for number, line in enumerate(app.screen.splitlines(), 1) if "repo-scout" in line)
    app.click(5, row)
    app.press("n")
    app.until_shown("Launch repo-scout")
    app.paste("pasted, with a\nsecond line")
    app.until_shown("pasted, with a", "second line")
    app.press("Escape")
    app.until_hidden("Launch repo-scout")


@pytest.mark.parametrize(
    ("before", "told"),
    [(OUTSIDE, "press ctrl+b, then d."), ((), "press ctrl+b, then ctrl+b, then d.")],
    ids=["outside tmux", "inside another tmux"],
)
def test_there_and_back(open_app: OpenApp, shop: Path, before: tuple[str, ...], told: str) -> None:
    """The app explains the way back first; detaching leaves the terminal and the app unchanged, and the run running."""
    app = open_app(argv=(*before, *SUBDECK))
    watcher_in(app)
    state = app.state
    app.press("a")
    app.until_shown("Attach to watcher", told)
    app.press("Enter")
    app.until_hidden("bg: ")
    app.until_shown(*PANE)
    app.press("C-b", "d")  # these keys go to the pane itself, past the tmux around it
    is_painted_and_alive(app)
    assert state == app.state
    app.press("a")
    app.until_shown(*PANE)
    app.press("C-b", "d")
    app.until_shown("bg: 1 running / 1 total")
    assert state == app.state
    (shop / "go").touch()
    app.until_shown("✓ completed: done", "bg: 0 running / 1 total")
    assert 0 == quit_app(app)


def test_inside_the_same_tmux(shop: Path) -> None:
    """In the runs' own tmux the client switches to the pane, and its key to the last session leads back."""
    argv = (*OUTSIDE, "tmux", "-L", "subdeck", "-f", "/dev/null", "new-session", *SUBDECK)
    with Terminal("around", argv, shop) as app:
        app.until_shown("subdeck  ~/src/shop", "0 running")
        watcher_in(app)
        app.press("a")
        app.until_shown("Attach to watcher", "press ctrl+b, then L.")
        app.press("Enter")
        app.until_shown(*PANE)
        app.press("C-b", "L")
        is_painted_and_alive(app)
        (shop / "go").touch()
        app.until_shown("✓ completed: done", "bg: 0 running / 1 total")
        app.press("q")
        app.until_hidden("bg: ")


def test_a_pane_that_is_gone(open_app: OpenApp, shop: Path) -> None:
    """The pane is checked before the terminal is lent; without one a sentence names the way to see the run."""
    app = open_app()
    watcher_in(app)
    (shop / "go").touch()
    app.until_shown("✓ completed: done")
    subprocess.run(["tmux", "-L", "subdeck", "kill-server"], check=True, stdin=subprocess.DEVNULL)
    app.press("a")
    app.until_shown("the run's tmux pane no longer exists", "subdeck logs")
    app.until_shown("bg: 0 running / 1 total")
