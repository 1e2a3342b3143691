"""`subdeck watch`: a few runs side by side in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK, subdeck

from .acts import status
from .terminal import Terminal

pytestmark = pytest.mark.tmux


@pytest.fixture
def two_runs(shop: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of two finished runs."""
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    for task in ("where is authenticate?", "where is place?"):
        assert subdeck("run", "repo-scout", task, cwd=shop).code == 0
    return [run["runId"] for run in status(shop)["runs"]]


@pytest.mark.parametrize("size", [(80, 24), (140, 40)], ids=["narrow", "wide"])
def test_watching_runs(shop: Path, two_runs: list[str], size: tuple[int, int]) -> None:
    """Both are on the screen and nothing else; q ends the program, without a trace of an error."""
    with Terminal("watch", (*SUBDECK, "watch", *two_runs), shop, size) as app:
        app.until_shown("▸ where is", "completed: done", "tab next")
        app.until(lambda: app.screen.splitlines()[0].count("╭─ ✓") == 2, "both of them")
        assert "Presets" not in app.screen
        app.press("z")
        app.until(lambda: app.screen.splitlines()[0].count("╭─ ✓") == 1, "one of them alone")
        app.press("q")
        app.until(lambda: app.screen.splitlines()[0].count("╭─ ✓") == 2, "both again")
        app.press("q")
        app.until(lambda: app.has_ended, "the program to end")
        assert app.exit_code() == 0


def test_an_unknown_run_is_an_error(shop: Path, two_runs: list[str]) -> None:
    """An unknown run, and too many runs, end the program before it takes the screen."""
    for words, said in ((("nope",), 'no run matches "nope"'), (two_runs * 4, "cannot show 8 runs side by side")):
        with Terminal(f"refused-{len(words)}", (*SUBDECK, "watch", *words), shop) as app:
            app.until_shown(said)
            app.until(lambda: app.has_ended, "the program to end")
            assert app.exit_code() == 2
