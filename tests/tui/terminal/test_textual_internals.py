"""The app's assumptions about the internals of the pinned Textual."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from subdeck.tui.launch._screen import LaunchScreen
from subdeck.tui.terminal import textual_internals
from subdeck.tui.terminal.textual_internals import (
    LeanScreen,
    bind,
    drop_bindings,
    grow,
    make_room_for_toast,
    set_timer,
    write_to_terminal,
)
from subdeck.tui.theme import LIGHT
from textual import _time
from textual.app import App, ComposeResult
from textual.geometry import Region, Size
from textual.notifications import Notification
from textual.screen import UPDATE_PERIOD, Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static, TextArea

from ..fake_engine import FakeEngine, a_run
from ..open_deck import opened


class OneWidget(App[None]):
    def __init__(self, widget: Any) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


async def test_a_timer_that_begins_late_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer whose time passes between two of its own lines is called at once, not never."""
    called = asyncio.Event()
    async with OneWidget(Static()).run_test() as pilot:
        moments = chain((0.0,), repeat(1.0))
        monkeypatch.setattr(_time, "get_time", lambda: next(moments))
        set_timer(pilot.app.screen, 0.5, called.set)
        async with asyncio.timeout(10):
            await called.wait()
        monkeypatch.undo()


def test_no_timer_is_textuals_own() -> None:
    """The app sets its timers by the function that never leaves one out."""
    app = Path(textual_internals.__file__).parents[1]
    others = [path.name for path in app.rglob("*.py") if ".set_timer(" in path.read_text(encoding="utf-8")]
    assert others == [Path(textual_internals.__file__).name]


async def test_rules_are_applied_once_and_again_for_another_theme(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first screen and a dialog are styled once, and a later theme restyles them."""
    first_styles: list[bool] = []
    original = Screen.update_node_styles

    def noted(screen: Screen[Any], animate: bool = True) -> None:
        if not animate:
            first_styles.append(True)
        original(screen, animate)

    monkeypatch.setattr(Screen, "update_node_styles", noted)
    async with opened(FakeEngine()) as deck:
        assert isinstance(deck.main, LeanScreen)
        assert first_styles == []
        await deck.press("n")
        assert isinstance(deck.app.screen, LaunchScreen)
        assert first_styles == [], "a dialog's widgets were styled for its size when they were mounted"
        assert deck.app.screen.has_class("-high")
        await deck.press("escape")
        background = deck.main.styles.background
        deck.app.theme = LIGHT.name
        await deck.until(lambda: deck.main.styles.background != background, "the other colours")


async def test_only_changed_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change draws only its own rows, with the same result as a complete drawing."""
    drawn: list[tuple[Widget, Region]] = []
    original = Widget.render_lines

    def noted(widget: Widget, crop: Region) -> list[Strip]:
        drawn.append((widget, crop))
        return original(widget, crop)

    async with opened(FakeEngine(a_run(1), a_run(2), a_run(3))) as deck:
        await deck.until_text("task 1")
        await deck.pilot.pause()
        compositor, runs = deck.main._compositor, deck.main.runs
        compositor.render_full_update()
        monkeypatch.setattr(Widget, "render_lines", noted)
        row = Region(runs.region.x + 4, runs.region.y + 2, 9, 1)
        compositor._dirty_regions.add(row)
        update = compositor.render_partial_update()
        assert [(runs, Region(0, 2, runs.region.width, 1))] == drawn
        assert update is not None
        whole = compositor._render_chops(compositor.size.region, lambda _: True)
        chop = max(x for x in whole[row.y] if x <= row.x)
        assert update.chops[row.y][chop].text == whole[row.y][chop].text


async def test_a_hidden_screen_has_nothing_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes below a covering screen draw nothing, and are there when it is closed."""

    class Below(LeanScreen):
        def compose(self) -> ComposeResult:
            yield Static("before", id="text")

    async with App[None]().run_test() as pilot:
        app = pilot.app
        below, above = Below(), LeanScreen()
        await app.push_screen(below)
        await app.push_screen(above)
        await pilot.pause()
        calls: list[str] = []
        for screen, name in ((below, "_compositor_refresh"), (above._compositor, "render_full_update")):
            monkeypatch.setattr(screen, name, _noted(getattr(screen, name), name, calls))
        below.query_one("#text", Static).update("after")
        while not calls:
            await pilot.pause()
        await pilot.pause(UPDATE_PERIOD)  # in which the screen above would be drawn
        assert {"_compositor_refresh"} == set(calls)
        await app.pop_screen()
        while "after" not in below._compositor.render_strips()[0].text:
            await pilot.pause()


def _noted(function: Callable[..., Any], name: str, calls: list[str]) -> Callable[..., Any]:
    """Return a function that does the same and records its call."""

    def noted(*args: Any, **options: Any) -> Any:
        calls.append(name)
        return function(*args, **options)

    return noted


async def test_captured_output_has_an_encoding() -> None:
    """While the app is open its stdout has an encoding."""
    async with opened(FakeEngine()):
        assert ("utf-8", "utf-8") == (sys.stdout.encoding, sys.stderr.encoding)


async def test_toasts_make_room() -> None:
    """A toast with the same text replaces the earlier one, and only the newest toasts stay."""
    async with OneWidget(TextArea()).run_test() as pilot:
        app = pilot.app
        for text in ("a", "b", "c", "d"):
            app.notify(text)
        await pilot.pause()
        make_room_for_toast(app, Notification("d"), 3, lambda toast, coming: toast.message == coming.message)
        assert [toast.message for toast in app._notifications] == ["b", "c"]


async def test_a_sequence_is_written_by_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequence is written to the terminal if there is one, and nowhere without one."""
    written: list[str] = []
    async with OneWidget(TextArea()).run_test() as pilot:
        monkeypatch.setattr(pilot.app._driver, "write", written.append)
        write_to_terminal(pilot.app.screen, "headless")
        monkeypatch.setattr(type(pilot.app), "is_headless", False)
        write_to_terminal(pilot.app.screen, "\x1b]2;x\x07")
        assert written == ["\x1b]2;x\x07"]


async def test_keys_are_taken_from_a_widget() -> None:
    """A dropped key does nothing in its widget any more; another widget of the class keeps it."""
    area = TextArea("word")
    drop_bindings(area, ("ctrl+k", "f24"))
    assert "ctrl+k" not in area._bindings.key_to_bindings
    assert "ctrl+k" in TextArea()._bindings.key_to_bindings


async def test_key_is_given_to_one_widget() -> None:
    """A bound key works in one widget only, not in others of its class."""
    area = TextArea("word")
    bind(area, "f24", "undo", "undo")
    assert ["undo"] == [binding.action for binding in area._bindings.key_to_bindings["f24"]]
    assert "f24" not in TextArea()._bindings.key_to_bindings


async def test_growing_lays_out_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further rows below a full view only move the scrollbar's thumb."""
    view = ScrollView()
    async with OneWidget(view).run_test(size=(40, 10)) as pilot:
        grow(view, Size(38, 20))
        await pilot.pause()
        assert view.show_vertical_scrollbar
        laid_out: list[bool] = []
        original = view.refresh
        monkeypatch.setattr(
            view,
            "refresh",
            lambda *args, layout=False, **kwargs: (laid_out.append(layout), original(*args, layout=layout, **kwargs)),
        )
        grow(view, Size(38, 30))
        await pilot.pause()
        assert (view.virtual_size.height, view.max_scroll_y) == (30, 20)
        assert True not in laid_out
