"""The main job in a real terminal: launch, watch, see the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories import write_settings

from .acts import SLOW, launch, only_run
from .conftest import OpenApp

TASK = "find where requests are authenticated"

pytestmark = pytest.mark.tmux


@pytest.mark.parametrize("size", [(120, 30), (80, 24)], ids=["wide", "narrow"])
def test_launch_and_watch_to_the_end(open_app: OpenApp, shop: Path, size: tuple[int, int]) -> None:
    """A preset is launched by keyboard, read while it works and writes, and its result is shown in row and footer."""
    write_settings()  # with an agent that does what the task says, so that it writes as long as it is looked at
    app = open_app(size)
    launch(app, f"tool read\n{SLOW}")
    app.until_shown("● ", "repo-scout ▸ tool read", "bg: 1 running / 1 total", "a.py", "I am looking at the shop▋")
    (shop / "go").touch()
    end = app.until_shown("✓ completed: done", "bg: 0 running / 1 total", " ✓ repo-scout", "The shop is fine")
    assert "● " not in end
    run = only_run(shop)
    assert ("completed", "done", "The shop is fine") == (run["status"], run["reason"], run["finalText"])


def test_the_offline_agent(open_app: OpenApp, shop: Path) -> None:
    """Without an installed agent, the built-in one answers from the files of the project."""
    app = open_app()
    assert "offline" in app.screen
    launch(app, TASK)
    app.until_shown("✓ completed: done", f"repo-scout ▸ {TASK}", "bg: 0 running / 1 total", "src/auth.py")
    run = only_run(shop)
    assert ("completed", "done") == (run["status"], run["reason"])
    assert "src/auth.py:1" in run["finalText"]


def test_an_empty_task_starts_nothing(open_app: OpenApp, shop: Path) -> None:
    """The dialog stays and explains why; no directory is made."""
    app = open_app()
    app.until_shown("repo-scout")
    app.press("n")
    app.until_shown("Launch repo-scout")
    app.press("C-s")
    app.until_shown("Launch repo-scout", "task")
    app.press("Escape")
    app.until_hidden("Launch repo-scout")
    assert not (shop / ".pi/subagents/runs").exists()


def test_resizing(open_app: OpenApp) -> None:
    """A narrow terminal hides the presets behind the runs, and a wide one restores them."""
    app = open_app((160, 40))
    launch(app, TASK)
    app.until_shown("✓ completed: done", "─ Presets ─", "─ Runs ─")
    app.resize(80, 24)
    narrow = app.until_shown("─ Runs ─", "✓ completed: done", "? help")
    assert "─ Presets ─" not in narrow
    app.resize(160, 40)
    app.until_shown("─ Presets ─", "─ Runs ─", "✓ completed: done")
