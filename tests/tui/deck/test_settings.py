"""The app reads changed settings files again, and reports what changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.config.files import KEYS
from subdeck.core.errors import SettingsError
from subdeck.core.paths import user_settings_file
from subdeck.tui.settings_report import reloaded_text, unusable_text

from ..open_deck import Deck, opened
from ..real_engine import offline_engine

pytestmark = pytest.mark.processes


def write(text: str) -> str:
    """Replace the user's settings file, as an editor does; return its path."""
    path = user_settings_file()
    Path(f"{path}.new").write_text(text)
    os.replace(f"{path}.new", path)
    return path


async def until_toast(deck: Deck, text: str) -> str:
    """Wait for a toast with this text, and return it."""
    await deck.until(lambda: any(text in toast for toast in deck.toasts), f"the toast {text!r}")
    return next(toast for toast in deck.toasts if text in toast)


async def test_changed_settings_are_applied_and_named(project_dir: Path) -> None:
    """A changed file is read again: the toast has the names of the changed settings, and theme and columns follow."""
    async with opened(offline_engine(project_dir)) as deck:
        write("agent: offline\nbudget: {day: 5}\napp:\n  theme: nord\n  columns: [task, cost]\n")
        told = await until_toast(deck, "Settings reloaded")
        assert "Settings reloaded: budget.day, app.theme, app.columns" == told
        assert ("nord", 5) == (deck.app.theme, deck.main.bridge.engine.settings.day_budget)
        assert ["task", "cost"] == [column.name for column in deck.main.runs._columns]
        write("agent: offline\nday_budget: 6\napp: {theme: nord, columns: [task, cost]}\nnotifications: {bell: true}\n")
        assert "Settings reloaded: budget.day, notifications.bell" == await until_toast(deck, "notifications.bell")
        assert deck.main._toasts.settings.bell


async def test_an_invalid_file_changes_nothing(project_dir: Path) -> None:
    """A file that cannot be used is reported with file, line and hint; the earlier settings apply until it is valid."""
    async with opened(offline_engine(project_dir, max_parallel=7)) as deck:
        path = write("agent: offline\nmax_paralel: 3\n")
        told = await until_toast(deck, "Settings not reloaded")
        assert f'{path}:2: "max_paralel" is not a setting' in told
        assert "did you mean max_parallel" in told and "The earlier settings stay in effect." in told
        assert 7 == deck.main.bridge.engine.settings.max_parallel
        write("agent: offline\nmax_parallel: 7\n")
        assert "Settings reloaded: no value changed" == await until_toast(deck, "no value changed")


async def test_a_wrong_value_of_the_app(project_dir: Path) -> None:
    """A wrong value that only the app reads is a warning: the app keeps its own, and the other settings apply."""
    async with opened(offline_engine(project_dir, theme="nord")) as deck:
        path = write("agent: offline\napp: {theme: nrod}\nmax_parallel: 3\n")
        told = await until_toast(deck, "unknown theme")
        assert f'{path}:2: app.theme: unknown theme "nrod"' in told and "did you mean nord" in told
        assert "Settings reloaded: max_parallel" in deck.toasts
        assert ("nord", 3) == (deck.app.theme, deck.main.bridge.engine.settings.max_parallel)


async def test_the_file_of_the_project(project_dir: Path) -> None:
    """The project's file is read again as well, when it is created and when it is removed."""
    async with opened(offline_engine(project_dir)) as deck:
        file = Path(deck.main.bridge.engine.project.settings_file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("max_running: 2\nmax_parallel: 99\n")
        await until_toast(deck, "Settings reloaded: max_running")
        await until_toast(deck, "max_parallel is above your own limit")
        deck.app.clear_notifications()
        file.unlink()
        await until_toast(deck, "Settings reloaded: max_running")


async def test_new_keys(project_dir: Path) -> None:
    """Keys apply after a restart, and the toast says so; a collision is reported now."""
    async with opened(offline_engine(project_dir)) as deck:
        path = write("agent: offline\napp:\n  keys: {stop: k, launch: k}\n")
        assert "after a restart of the app: app.keys" in await until_toast(deck, "app.keys")
        told = await until_toast(deck, "is already used for")
        assert f"{path}:3" in told


def test_the_report_is_short() -> None:
    """Many settings are counted, and those that need a restart have a line of their own."""
    assert f"{', '.join(list(KEYS)[:8])}, and 3 more" in reloaded_text(list(KEYS)[:11])
    text = reloaded_text(["max_parallel", "app.keys", "notifications.title"])
    assert (
        "Settings reloaded: max_parallel\nChanged, in effect after a restart of the app: app.keys, notifications.title"
        == text
    )
    error = SettingsError("wrong\x1b[31m", where="/c.yaml:3", hint="right")
    assert "\x1b" not in unusable_text(error) and "/c.yaml:3: wrong" in unusable_text(error)
