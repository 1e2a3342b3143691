"""The scrollbar."""

from __future__ import annotations

from subdeck.core.run.events import AssistantText

from ..fake_engine import FakeEngine, a_run, run_id, some_events, stamp
from ..open_deck import opened


async def test_no_bar_where_all_is_in_view() -> None:
    """On a screen large enough for the whole transcript the scrollbar disappears."""
    engine = FakeEngine(a_run(1))
    engine.write(run_id(1), *some_events(), AssistantText(seq=20, ts=stamp(20), text="word " * 28))
    async with opened(engine, (80, 16)) as deck:
        transcript = deck.main.transcript
        await deck.until_text("11 events")
        assert transcript.show_vertical_scrollbar
        await deck.pilot.resize_terminal(120, 30)
        await deck.until(lambda: transcript.virtual_size.height == transcript.size.height == 12, "it to just fit")
        await deck.until(lambda: not transcript.show_vertical_scrollbar, "the bar to go")
        await deck.pilot.resize_terminal(80, 16)
        await deck.until(lambda: transcript.show_vertical_scrollbar, "the bar to come back")
