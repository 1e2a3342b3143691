"""An app that is open all day: its process stopped, its project moved, its window made tiny."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK, subdeck
from tests.factories import write_settings

from .acts import ESCAPE, SLOW, back_on_deck, choose, launch, only_run, quit_after, quit_app, session_entries, status
from .conftest import OpenApp
from .terminal import Terminal

pytestmark = pytest.mark.tmux


@pytest.fixture(autouse=True)
def puppet(home: Path) -> None:
    """The child does what the task says, so that it ends when the test wants it to."""
    write_settings()


def test_an_app_that_slept(open_app: OpenApp, shop: Path) -> None:
    """An app that was stopped while its run ended shows the truth when it continues, and reports the result once."""
    app = open_app()
    launch(app, SLOW)
    app.until_shown("● ", "I am looking at the shop▋")
    pid = app.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        (shop / "go").touch()
        app.until(lambda: only_run(shop)["status"] == "completed", "the end of the run")
    finally:
        os.kill(pid, signal.SIGCONT)
    app.until_shown("✓ completed: done", "The shop is fine", "bg: 0 running / 1 total")
    assert 1 == len(session_entries(shop, "bg-run"))
    assert 1 == len(session_entries(shop, "bg-update"))
    assert 0 == quit_app(app)


def test_a_project_moved_away_and_back(open_app: OpenApp, shop: Path) -> None:
    """The header shows that it is missing, a launch explains the error and keeps the text, and all works again
    afterwards.
    """
    app = open_app()
    launch(app, "answer The shop is fine")
    app.until_shown("✓ completed: done", "bg: 0 running / 1 total")
    away = shop.with_name("elsewhere")
    os.rename(shop, away)
    app.until_shown("! missing", "was moved or deleted")
    app.press("N")
    app.until_shown("One-off run")
    app.type("answer Once more")
    app.until_shown("answer Once more")
    app.press("C-s")
    app.until_shown("answer Once more", "does not exist")
    app.press("Escape")
    app.until_hidden("One-off run")
    os.rename(away, shop)
    app.until_shown("is back")
    app.until_hidden("! missing")
    launch(app, "answer And again")
    app.until_shown("And again", "bg: 0 running / 2 total")
    assert 0 == quit_app(app)


def test_a_project_deleted(open_app: OpenApp, shop: Path, tmp_path: Path) -> None:
    """Keys do no harm without the project, nothing recreates it, and the app ends as always."""
    app = open_app()
    launch(app, "answer The shop is fine")
    app.until_shown("✓ completed: done", "bg: 0 running / 1 total")
    app.press("i")
    app.until_shown("4 Overview")
    os.rename(shop, tmp_path / "deleted")  # for processes with an open directory, one of the same name is another one
    app.until_shown("This run was deleted")
    app.press(*"1234")
    app.until(lambda: back_on_deck(app), "the deck")
    app.until_shown("! missing", "bg: 0 running / 0 total")
    app.press("3", "t", "t", "t", "O", "x", "u", "r", "d")
    app.until(lambda: back_on_deck(app), "the deck")
    app.press("1", "e")
    app.until(lambda: back_on_deck(app), "the deck")
    app.press("2")
    choose(app, "doctor")
    app.until_shown("Doctor")
    app.type(ESCAPE)
    app.until_hidden("Doctor")
    assert 0 == quit_after(app)
    assert "Traceback" not in app.screen
    assert not shop.exists()


def test_a_tiny_window(open_app: OpenApp, shop: Path) -> None:
    """A writing run is shown in any size of the window, and complete when there is room again."""
    app = open_app()
    launch(app, SLOW)
    app.until_shown("● ", "I am looking at the shop▋")
    for width, height in ((20, 5), (1, 1), (300, 2), (2, 100), (20, 5)):
        app.resize(width, height)
        app.press("j", "k")
    (shop / "go").touch()
    app.until(lambda: only_run(shop)["status"] == "completed", "the end of the run")
    app.resize(120, 30)
    app.until_shown("✓ completed: done", "The shop is fine", "bg: 0 running / 1 total")
    assert 0 == quit_app(app)


def test_quitting_with_three_runs(open_app: OpenApp, shop: Path) -> None:
    """Quitting reports the running runs, and they continue."""
    app = open_app()
    for number in (1, 2, 3):
        launch(app, SLOW)
        app.until_shown(f"bg: {number} running / {number} total")
    assert 0 == quit_app(app)
    assert "3 runs are still running" in app.screen
    assert ["running"] * 3 == [run["status"] for run in status(shop)["runs"]]
    (shop / "go").touch()
    app.until(lambda: {run["status"] for run in status(shop)["runs"]} == {"completed"}, "their ends")


def test_one_run_that_another_app_deletes(open_app: OpenApp, shop: Path) -> None:
    """A window for a single run reports that the run was deleted elsewhere, and ends as always."""
    app = open_app()
    launch(app, "answer The shop is fine")
    app.until_shown("✓ completed: done", "bg: 0 running / 1 total")
    run = only_run(shop)["runId"]
    with Terminal("alone", (*SUBDECK, "--run", run), shop) as alone:
        alone.until_shown("The shop is fine")
        assert 0 == subdeck("rm", run, cwd=shop).code
        alone.until_shown("this run no longer exists")
        alone.press("t", "i", "x", "d")
        alone.press_until_hidden("Escape", "no longer exists")
        assert 0 == quit_app(alone)
        assert "Traceback" not in alone.screen
