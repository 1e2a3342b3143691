"""Keys in the screen of one run that go to other runs, or act on the shown one."""

from __future__ import annotations

import pytest
from subdeck.tui.detail._screen import RunDetailScreen
from subdeck.tui.detail.page import Tab
from subdeck.tui.dialogs.reader import HelpScreen

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened
from ..runs.test_needs_you import began, over
from ..sample_runs import a_group


async def detail_of(deck: Deck, number: int) -> RunDetailScreen:
    deck.main.runs.select(run_id(number))
    await deck.press("i")
    await deck.until(lambda: isinstance(deck.app.screen, RunDetailScreen), "the detail")
    screen = deck.app.screen
    assert isinstance(screen, RunDetailScreen)
    return screen


async def test_neighbours() -> None:
    """`J` and `K` show the run below and above in the list, in the same tab; at the ends nothing happens."""
    engine = FakeEngine(*a_group("running", "running", first=3), a_run(1, "completed"), a_run(2, "completed"))
    async with opened(engine) as deck:
        screen = await detail_of(deck, 3)
        await deck.press("4")
        seen: list[str] = []
        for key in ("J", "J", "J", "J", "K"):
            await deck.press(key)
            seen.append(screen.run.run_id)
        assert seen == [run_id(number) for number in (4, 2, 1, 1, 2)]
        assert screen._tab is Tab.OVERVIEW
        await deck.until(lambda: run_id(2) in deck.screen_text, "the id of the run that is shown")
        await deck.press("escape")
        assert deck.main.runs.selected == run_id(2)


async def test_those_that_need_a_person() -> None:
    """`]` and `[` go through the runs that need attention, and each shown run becomes read."""
    engine = FakeEngine(*(a_run(number) for number in range(1, 6)))
    async with opened(engine) as deck:
        await began(deck)
        screen = await detail_of(deck, 5)
        engine.tell(over(1), over(2, asks=True), over(3, "failed"))
        await deck.until(lambda: len(deck.main.run_store.needs) == 3, "three that need a person")
        seen: list[str] = []
        for key in ("]", "]", "["):
            await deck.press(key)
            seen.append(screen.run.run_id)
        assert seen == [run_id(number) for number in (3, 2, 1)]
        assert not deck.main.run_store.needs
        await deck.press("]")
        assert deck.toasts[-1] == "No run needs you."


async def test_stopping_what_is_shown() -> None:
    """`x` stops the shown run, not the marked ones; a finished run is refused."""
    engine = FakeEngine(a_run(1, meta_runner="process"), a_run(2), a_run(3, "completed"))
    async with opened(engine) as deck:
        await deck.press("space")
        assert deck.main.action_context.marked == 1
        screen = await detail_of(deck, 1)
        await deck.press("x")
        await deck.until(lambda: deck.app.screen is not screen, "the question")
        await deck.press("y")
        await deck.until(lambda: engine.stopped, "the stop")
        assert engine.stopped == [((run_id(1),), False)]
        await deck.until(lambda: deck.app.screen is screen, "the detail")
        screen.show_run(a_run(3, "completed"))
        await deck.press("x")
        await deck.until(lambda: "already finished" in deck.toasts[-1], "the refusal")


@pytest.mark.parametrize(("key", "text"), [("a", "task 1"), ("s", "What should the agent do")])
async def test_attaching_and_following_up(key: str, text: str) -> None:
    """`a` zooms the transcript of a run without a pane, `s` asks for the next task of its conversation."""
    ended = a_run(1, "completed", meta_session_path="/s", meta_child_session_id="c", meta_preset="")
    async with opened(FakeEngine(ended, a_run(2))) as deck:
        screen = await detail_of(deck, 1)
        await deck.press(key)
        await deck.until(lambda: deck.app.screen is not screen, "something else on the screen")
        await deck.until_text(text)
        assert deck.main.runs.selected == run_id(1)


async def test_toasts_replace_their_kind() -> None:
    """A key's toast replaces the one before it; endings and refusals are separate kinds."""
    engine = FakeEngine(a_run(1), a_run(2, "completed"))
    async with opened(engine) as deck:
        engine.tell(a_run(1, "failed"))
        await deck.until(lambda: deck.toasts, "the end")
        await deck.act("theme")
        await deck.act("theme")
        await deck.press("u")
        await deck.until(lambda: len(deck.toasts) == 3, "three toasts")
        assert [toast.split()[0] for toast in deck.toasts] == ["✗", "Theme:", "Nothing"]
        assert deck.toasts[1] == f"Theme: {deck.app.theme}"
        await deck.act("messages")
        await deck.until_text("Theme: subdeck-light")


@pytest.mark.parametrize("width", [40, 62, 80, 140])
async def test_help_wraps_at_its_width(width: int) -> None:
    """Lines of the help are wrapped once and use the whole width."""
    async with opened(FakeEngine(a_run(1)), (width, 30)) as deck:
        await deck.press("?")
        await deck.until(lambda: isinstance(deck.app.screen, HelpScreen), "the help")
        lines = deck.app.screen.query_one("#lines")
        await deck.until(lambda: lines.content_size.width > 0, "its width")
        await deck.pilot.pause()
        assert isinstance(deck.app.screen, HelpScreen)
        text = deck.app.screen.matching([]).plain.split("\n")
        room = lines.content_size.width
        assert max(map(len, text)) <= max(room, 34)
        assert max(map(len, text)) > room - 12
        assert lines.content_size.height == len(text)
