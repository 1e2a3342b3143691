"""Stopping runs from the deck: the question before it, and the cursor after it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from subdeck.core.run.model import Usage
from subdeck.tui.dialogs.ask import ConfirmScreen

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened


def just_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_a_run_that_has_just_begun_is_stopped_at_once() -> None:
    """A run under a minute and a cent is stopped by one key."""
    engine = FakeEngine(a_run(1, started_at=just_now()))
    async with opened(engine) as deck:
        await deck.press("x")
        await deck.until(lambda: engine.stopped == [((run_id(1),), False)], "the stop")


@pytest.mark.parametrize(
    "run", [a_run(1), a_run(1, started_at=just_now(), usage=Usage(cost=0.31))], ids=["a minute", "a cent"]
)
async def test_stopping_a_dear_run_asks_once(run: object) -> None:
    """A run over a minute or a cent is stopped after a question with both figures; Enter keeps the run."""
    engine = FakeEngine(run)  # type: ignore[arg-type]
    async with opened(engine, (80, 24)) as deck:
        await deck.press("x")
        await deck.until_text("Stop this run?")
        await deck.until_text("so far. Its work is kept.")
        await deck.press("enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert engine.stopped == []
        await deck.press("x")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmScreen), "the question")
        await deck.press("y")
        await deck.until(lambda: engine.stopped == [((run_id(1),), False)], "the stop")


async def test_the_cursor_stays_where_it_was() -> None:
    """When a stopped run's row moves to the finished ones, the cursor stays on the row that takes its place."""
    engine = FakeEngine(*(a_run(number, started_at=just_now()) for number in range(1, 5)))
    async with opened(engine) as deck:
        await deck.press("j", "x")
        await deck.until(lambda: engine.stopped, "the stop")
        engine.tell(a_run(3, "aborted"))
        await deck.until(lambda: deck.main.counts.running == 3, "its end")
        assert (1, run_id(2)) == (deck.main.runs.cursor, deck.main.runs.selected)


async def test_the_cursor_goes_with_a_run_that_ends_by_itself() -> None:
    """The cursor follows a run that finishes on its own."""
    engine = FakeEngine(*(a_run(number, started_at=just_now()) for number in range(1, 5)))
    async with opened(engine) as deck:
        await deck.press("j")
        engine.tell(a_run(3, "completed"))
        await deck.until(lambda: deck.main.counts.running == 3, "its end")
        assert (3, run_id(3)) == (deck.main.runs.cursor, deck.main.runs.selected)
