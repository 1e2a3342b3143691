"""The grid: a few runs side by side, live."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest
from subdeck.core.run.events import AssistantText
from subdeck.tui.app import SubdeckApp
from subdeck.tui.deck.screen import MainScreen
from subdeck.tui.keys.command import KeyContext
from subdeck.tui.tiles.screen import Tile, TilesScreen, columns_of, foot

from ..fake_engine import FakeEngine, a_run, ended, run_id
from ..open_deck import Deck, opened


def said(number: int, text: str) -> AssistantText:
    return AssistantText(seq=number, text=text)


def an_engine(*statuses: str) -> FakeEngine:
    engine = FakeEngine(*(a_run(number, status, last_seq=1) for number, status in enumerate(statuses, 1)))
    for number in range(1, len(statuses) + 1):
        engine.write(run_id(number), said(1, f"I am run {number}."))
    return engine


async def tiles_of(deck: Deck, key: str = "W") -> TilesScreen:
    await deck.press(key)
    await deck.until(lambda: isinstance(deck.app.screen, TilesScreen), "the tiles")
    screen = deck.app.screen
    assert isinstance(screen, TilesScreen)
    return screen


def words_of(tile: Tile) -> str:
    height = tile.scrollable_content_region.height
    return "\n".join(tile.render_line(y).text for y in range(height))


def shows(tile: Tile, words: str) -> Callable[[], bool]:
    return lambda: words in words_of(tile)


async def test_running_runs_are_shown_side_by_side() -> None:
    """Without marks each running run has a tile with glyph, activity, cost and time."""
    async with opened(an_engine("running", "completed", "running"), (120, 30)) as deck:
        screen = await tiles_of(deck)
        assert sorted(screen.run_ids) == [run_id(1), run_id(3)]
        for tile in screen.tiles:
            await deck.until(shows(tile, f"I am run {int(tile.wanted_id[-6:])}."), "its transcript")
            assert str(tile.border_title).startswith("● running repo-scout ▸ task")
            assert str(tile.border_subtitle).startswith("starting")
        left, right = screen.tiles
        assert left.region.y == right.region.y
        assert left.region.right <= right.region.x


async def test_marked_runs_go_first() -> None:
    """With marks those runs are shown, finished ones too; of more than six the first six, with a note."""
    async with opened(an_engine(*["completed"] * 7, "running"), (140, 40)) as deck:
        deck.main.runs.mark([run_id(number) for number in range(1, 8)], True)
        screen = await tiles_of(deck)
        assert len(screen.tiles) == 6
        assert run_id(8) not in screen.run_ids
        assert deck.toasts == ["Showing the first 6 of 7 selected runs."]


async def test_without_runs_it_says_so() -> None:
    """Without running and marked runs, a message says what to do."""
    async with opened(an_engine("completed")) as deck:
        await deck.press("W")
        await deck.until(lambda: deck.toasts != [], "the word")
        assert deck.toasts == ["No run is running. Select two to six runs (space) to see them in the grid."]


async def test_tiles_are_live() -> None:
    """A run's text, progress and outcome appear in its tile, and in no other."""
    engine = an_engine("running", "running")
    async with opened(engine) as deck:
        screen = await tiles_of(deck)
        one, other = sorted(screen.tiles, key=lambda tile: tile.wanted_id)
        await deck.until(shows(one, "I am run 1."), "its transcript")
        engine.write(run_id(1), said(2, "Now I know."), ended(3, "failed", "model_error"))
        engine.tell(a_run(1, "failed", last_seq=3, reason="model_error"))
        await deck.until(shows(one, "Now I know."), "what it wrote")
        await deck.until(lambda: str(one.border_title).startswith("✗"), "its end")
        assert "Now I know." not in words_of(other)
        engine.tell(removed=[run_id(1)])
        await deck.until(lambda: "was deleted" in str(one.border_title), "that it is gone")


async def test_an_end_in_a_tile_needs_no_toast() -> None:
    """An ending in a visible tile makes no toast; one in a hidden tile does."""
    engine = FakeEngine(*(a_run(number) for number in range(1, 4)))
    async with opened(engine, (140, 40)) as deck:
        deck.main.runs.mark([run_id(1), run_id(2)], True)
        screen = await tiles_of(deck)
        focused, other = screen.tiles
        engine.tell(a_run(int(focused.wanted_id[-6:]), "completed"))
        await deck.until(lambda: "✓" in str(focused.border_title), "its end")
        engine.tell(a_run(3, "failed"))
        await deck.until(lambda: deck.toasts, "the toast of the other")
        assert len(deck.toasts) == 1 and "failed" in deck.toasts[0] and "completed" not in deck.toasts[0]
        await deck.press("z")
        await deck.until(lambda: not other.display, "the zoom")
        engine.tell(a_run(int(other.wanted_id[-6:]), "failed"))
        hidden = f"task {int(other.wanted_id[-6:])}"
        await deck.until(lambda: any(hidden in toast for toast in deck.toasts), "the toast of the hidden one")


async def test_a_tile_says_that_its_run_is_silent() -> None:
    """A tile shows its idle run like the list: by glyph and word, with the time."""
    engine = FakeEngine(a_run(1, heard_at=monotonic() - 367, patience=60.0, activity="Search finished"))
    async with opened(engine, (120, 30)) as deck:
        (tile,) = (await tiles_of(deck)).tiles
        await deck.until(lambda: str(tile.border_title).startswith("◐ idle"), "the silence")
        assert str(tile.border_subtitle).startswith("idle 6:")


async def test_keys_go_from_tile_to_tile() -> None:
    """Tab, arrows and numbers go to a tile; z zooms it, and Escape leaves that, then the grid."""
    async with opened(an_engine("running", "running", "running"), (120, 30)) as deck:
        screen = await tiles_of(deck)
        first, second, third = screen.tiles
        assert first.has_focus
        for key, tile in (
            ("tab", second),
            ("right", third),
            ("l", first),
            ("shift+tab", third),
            ("2", second),
            ("5", second),
        ):
            await deck.press(key)
            assert tile.has_focus, key
        await deck.press("z")
        await deck.until(lambda: second.region.width == 120, "the zoom")
        await deck.press("tab")
        await deck.until(lambda: third.region.width == 120 and not second.display, "the next one zoomed")
        await deck.press("escape")
        await deck.until(lambda: third.region.width < 120 and second.display, "all tiles")
        await deck.press("escape")
        await deck.until(lambda: isinstance(deck.app.screen, MainScreen), "the deck")
        assert deck.main.bridge._tiles == {}


async def test_a_tile_is_opened_on_the_deck() -> None:
    """Enter goes to the run's transcript on the deck."""
    async with opened(an_engine("running", "running")) as deck:
        screen = await tiles_of(deck)
        await deck.press("tab", "enter")
        await deck.until(lambda: deck.main.run is not None and deck.main.run.run_id == screen.tiles[1].wanted_id, "it")
        await deck.until(lambda: deck.main.panes.key_context is KeyContext.TRANSCRIPT, "the transcript")


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_tile_is_stopped(readonly: bool) -> None:
    """x stops the tile's run, as on the deck; a read-only app refuses."""
    engine = an_engine("running", "running")
    async with opened(engine, readonly=readonly) as deck:
        screen = await tiles_of(deck)
        await deck.press("2", "x")
        if readonly:
            await deck.until(lambda: any("--readonly" in toast for toast in deck.toasts), "the refusal")
            assert not engine.stopped
            return
        await deck.until_text("Stop this run?")
        await deck.press("y")
        await deck.until(lambda: engine.stopped, "the stop")
        assert screen.tiles[1].wanted_id in str(engine.stopped)


async def test_watching_is_the_app() -> None:
    """An app for some runs shows their tiles from the beginning, and ends with them."""
    engine = an_engine("running", "completed")
    app = SubdeckApp(engine, watched=[run_id(1), run_id(2)])
    async with app.run_test(size=(100, 30)) as pilot:
        deck = Deck(app, pilot)
        await deck.until(lambda: isinstance(app.screen, TilesScreen), "the tiles")
        screen = app.screen
        assert isinstance(screen, TilesScreen)
        await deck.until(shows(screen.tiles[0], "I am run 1."), "a transcript")
        await deck.until(shows(screen.tiles[1], "I am run 2."), "the other one")
        await deck.press("q")
        await deck.until(lambda: app._exit, "the end")


@pytest.mark.parametrize(
    ("tiles", "width", "columns"),
    [(2, 80, 2), (3, 80, 2), (3, 140, 3), (4, 80, 2), (6, 80, 2), (6, 140, 3), (2, 60, 1)],
)
def test_how_tiles_share_the_screen(tiles: int, width: int, columns: int) -> None:
    """Tiles are side by side while each has room for a line."""
    assert columns_of(tiles, width) == columns


def test_the_foot_keeps_what_matters() -> None:
    """With little room a tile's activity is cut before its time, which stays."""
    run = a_run(1, "completed", meta_task="x", message="a long answer that has no room at all")
    assert foot(run, "", 80).startswith("a long answer that has no room at all · ")
    for room in (20, 30, 40):
        assert len(foot(run, "", room)) <= room
        assert foot(run, "", room).split(" · ")[-1]
