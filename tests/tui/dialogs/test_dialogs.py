"""Every dialog fits 80x24: its frame, its buttons and the keys that end it are on the screen.

A new dialog needs a line in `WAYS`; until then the test for completeness names it.
"""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import subdeck.tui
from subdeck.core.presets.catalog import PresetProblem
from subdeck.core.run.model import PresetSource
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button

from ..fake_engine import FakeEngine, a_preset, a_run, run_id, some_events
from ..open_deck import Deck, opened

LONG = "explain how requests are authenticated, and by whom, and since when " * 6

WAYS: dict[str, tuple[str, ...]] = {
    "AskScreen": (":transcript", ":go_to_time"),
    "CleanUpScreen": (":clean_up",),
    "ConfirmScreen": ("2", "X"),
    "CopyPresetScreen": ("1", "g", ":copy_preset"),
    "EarlierTasksScreen": ("n", "ctrl+r"),
    "HelpScreen": ("?",),
    "LaunchScreen": ("n",),
    "ModelsScreen": ("n", "ctrl+l"),
    "PaletteScreen": (":",),
    "PipeScreen": ("|",),
    "PresetEditorScreen": ("1", ":create_preset"),
    "QuitScreen": ("q",),
    "ReadingScreen": (":messages",),
    "RefusalScreen": (":with_context",),
    "RunDetailScreen": ("i",),
    "SearchScreen": ("ctrl+f",),
}
"""The keys and actions by which each dialog is opened from the deck of `an_engine`."""

ELSEWHERE = {"ChangedFileScreen", "DialogScreen", "DataScreen", "PickScreen", "PlanScreen", "EarlyScreen"}
"""DialogScreen and DataScreen are bases; the tests of the preset editor, of answers, of taking over and of the
first minute open the others."""


def an_engine() -> FakeEngine:
    """Return an engine with something to show in each dialog."""
    engine = FakeEngine(
        a_run(1, "completed", meta_task=LONG, message=LONG),
        a_run(2, "failed", message=LONG),
        a_run(3, meta_task=LONG, meta_preset="a-preset-with-a-name-that-is-long"),
        presets=[a_preset("Explore", description=LONG, source=PresetSource.BUNDLED, warnings=(LONG,))],
        problems=[PresetProblem(path="/p/broken.md", message=LONG, source=PresetSource.PROJECT, name="broken")],
    )
    engine.write(run_id(3), *some_events())
    return engine


def dialogs() -> set[str]:
    """Return the names of all dialogs."""
    package = subdeck.tui
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(package.__path__, "subdeck.tui.")]
    return {
        kind.__name__
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, ModalScreen) and kind.__module__ == module.__name__
    }


def test_every_dialog_is_looked_at() -> None:
    """Every dialog has keys that open it in these tests."""
    assert dialogs() == WAYS.keys() | ELSEWHERE


def frame_of(deck: Deck) -> Widget:
    """Return the dialog's frame, or the whole screen for a dialog without one."""
    return next(iter(deck.app.screen.query(".dialog")), deck.app.screen)


def is_displayed(widget: Widget) -> bool:
    return all(node.display for node in widget.ancestors_with_self if isinstance(node, Widget))


async def shown(deck: Deck, name: str) -> None:
    await deck.until(lambda: deck.main.presets.row_count and deck.main.run, "presets and runs")
    await deck.press(*WAYS[name])
    await deck.until(lambda: type(deck.app.screen).__name__ == name, name)
    await deck.pilot.pause()


@pytest.mark.parametrize("name", WAYS)
async def test_it_fits(name: str) -> None:
    """At 80x24 the whole frame is on the screen, with every button and every key that ends the dialog."""
    async with opened(an_engine(), (80, 24)) as deck:
        await shown(deck, name)
        screen = deck.app.screen
        frame = frame_of(deck)
        assert screen.region.contains_region(frame.region)
        shown_ends = [end for end in screen.query("Button, .buttons #keys") if is_displayed(end)]
        for widget in shown_ends:
            assert frame.region.contains_region(widget.region) and widget.size.height > 0, widget
        labels = [str(widget.label) for widget in shown_ends if isinstance(widget, Button)]
        assert all(label in deck.screen_text for label in labels)
        assert labels or "esc" in deck.screen_text


@pytest.mark.parametrize("name", WAYS)
async def test_escape_closes_it(name: str) -> None:
    """Escape returns to the screen before the dialog without any effect."""
    engine = an_engine()
    async with opened(engine, (80, 24)) as deck:
        await shown(deck, name)
        depth = len(deck.app.screen_stack)
        await deck.press("escape")
        await deck.until(lambda: len(deck.app.screen_stack) == depth - 1, "what was there before")
        assert (engine.launched, engine.stopped, engine.deleted) == ([], [], [])


@pytest.mark.parametrize("name", WAYS)
async def test_it_stands_a_tiny_terminal(name: str) -> None:
    """A terminal made tiny and large again under an open dialog shows the same dialog."""
    async with opened(an_engine(), (80, 24)) as deck:
        await shown(deck, name)
        before = frame_of(deck).region
        await deck.pilot.resize_terminal(20, 5)
        await deck.pilot.pause()
        await deck.pilot.resize_terminal(80, 24)
        await deck.until(lambda: frame_of(deck).region == before, "the same frame")


async def test_the_deck_is_seen_around_a_dialog() -> None:
    """The deck is visible around a dialog, even if the dialog is drawn first."""
    async with opened(an_engine()) as deck:
        await deck.press("q")
        deck.app.screen.refresh()
        assert "bg: 1 running" in deck.screen_text
