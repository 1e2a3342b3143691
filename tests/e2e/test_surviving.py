"""Runs outlive the app; the next reader, here or in another shell, sees the truth, and each result once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.command_line import subdeck
from tests.factories import write_settings

from .acts import SLOW, launch, only_run, quit_app, session_entries
from .conftest import OpenApp

pytestmark = pytest.mark.tmux


@pytest.fixture(autouse=True)
def puppet(home: Path) -> None:
    """The child does what the task says, so that it ends when the test wants it to."""
    write_settings()


def test_quitting_leaves_runs_alive(open_app: OpenApp, shop: Path) -> None:
    """Quitting names running runs; another shell sees them; the next app reports their results, the one after does
    not.
    """
    app = open_app()
    launch(app, SLOW)
    app.until_shown("● ", "I am looking at the shop▋")
    assert 0 == quit_app(app)
    assert "1 run is still running. subdeck status shows it." in app.screen
    shown = subdeck("status", cwd=shop).out
    assert "● running" in shown
    assert "1 running" in shown
    (shop / "go").touch()
    assert 0 == subdeck("wait", only_run(shop)["runId"], cwd=shop).code

    later = open_app()
    later.until_shown("While you were away, 1 run finished: 1 completed.", "✓ completed", "bg: 0 running / 1 total")
    assert 0 == quit_app(later)
    assert "on in the background" not in later.screen
    last = open_app()
    assert "While you were away" not in last.until_shown("✓ completed: done", "The shop is fine")
    assert 1 == len(session_entries(shop, "bg-update"))


def test_a_killed_app(open_app: OpenApp, shop: Path) -> None:
    """Killing the app ends no run, and a new app shows the run as it is."""
    app = open_app()
    launch(app, SLOW)
    app.until_shown("● ", "I am looking at the shop▋")
    app.kill()
    assert "running" == only_run(shop)["status"]
    again = open_app()
    again.until_shown("● ", "I am looking at the shop▋", "bg: 1 running / 1 total")
    (shop / "go").touch()
    again.until_shown("✓ completed: done", "The shop is fine", "bg: 0 running / 1 total")
    assert ("completed", "wrapper") == (only_run(shop)["status"], only_run(shop)["writtenBy"])


def test_stopping_by_key(open_app: OpenApp, shop: Path) -> None:
    """x ends the highlighted run, and row, transcript and files show the reason."""
    app = open_app()
    launch(app, SLOW)
    app.until_shown("● ", "I am looking at the shop▋")
    app.press("x")
    app.until_shown("⊘ aborted: stopped", "bg: 0 running / 1 total")
    run = only_run(shop)
    assert ("aborted", "stopped") == (run["status"], run["reason"])
    assert "by the user" in run["errorMessage"]


def test_two_apps(open_app: OpenApp, shop: Path) -> None:
    """Two apps on one project both show a run and its result; the session has it once."""
    first, second = open_app(), open_app()
    launch(first, SLOW)
    for app in (first, second):
        app.until_shown("● ", "I am looking at the shop▋", "bg: 1 running / 1 total")
    (shop / "go").touch()
    for app in (first, second):
        app.until_shown("✓ completed: done", " ✓ repo-scout", "bg: 0 running / 1 total")
    assert 1 == len(session_entries(shop, "bg-run"))
    assert 1 == len(session_entries(shop, "bg-update"))
    assert "While you were away" not in open_app().until_shown("The shop is fine")
