"""The queue at the keyboard."""

from __future__ import annotations

import pytest
from subdeck.core.run.describe import doing
from subdeck.core.run.snapshot import Queued

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened


async def test_queued_run_is_moved() -> None:
    """Shift with an arrow moves a queued run, and a toast shows its new place."""
    engine = FakeEngine(a_run(1, "queued"))
    async with opened(engine) as deck:
        await deck.act("runs", "queue_up", "queue_down")
        await deck.until(lambda: len(engine.moved) == 2, "both moves")
        assert [(run_id(1), -1), (run_id(1), 1)] == engine.moved
        await deck.until(lambda: ["repo-scout 000001: 2 ahead"] == deck.toasts, "the words about the second one alone")


async def test_run_that_does_not_wait_is_not_moved() -> None:
    """A run that is not queued is not moved, and the toast gives the reason."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        await deck.act("runs", "queue_up")
        assert (["This run is not queued."], []) == (deck.toasts, engine.moved)


async def test_queue_is_held_and_released() -> None:
    """One action pauses and resumes the queue, and reports the new state."""
    engine = FakeEngine(a_run(1, "queued"))
    async with opened(engine) as deck:
        await deck.act("hold_queue")
        await deck.until(lambda: deck.toasts, "the word")
        assert engine.held and ":pause queue resumes it" in deck.toasts[0]
        await deck.act("hold_queue")
        await deck.until(lambda: not engine.held, "the release")


@pytest.mark.parametrize("key", [":queue_up", ":queue_down", ":hold_queue"])
async def test_queue_is_left_alone_when_readonly(key: str) -> None:
    """A read-only app does not change the queue."""
    engine = FakeEngine(a_run(1, "queued"))
    async with opened(engine, readonly=True) as deck:
        await deck.press("2", key)
        await deck.until(lambda: deck.toasts, "the refusal")
        assert "--readonly" in deck.toasts[0] and not engine.held and not engine.moved


def test_held_queue_is_said_in_the_row() -> None:
    """The row of a waiting run shows that the queue is paused."""
    run = a_run(1, "queued")
    from msgspec.structs import replace

    assert "queue paused, 2 ahead" == doing(replace(run, state=Queued(ahead=2, held=True)))


@pytest.mark.parametrize(
    ("size", "words"), [((120, 30), "1 queued (paused, :pause queue resumes)"), ((40, 24), "1 queued (paused)")]
)
async def test_header_names_the_key_that_resumes_a_held_queue(size: tuple[int, int], words: str) -> None:
    """While the queue is paused the header shows it beside the queued runs."""
    engine = FakeEngine(a_run(1), a_run(2, "queued", held=True))
    async with opened(engine, size) as deck:
        await deck.until_text(f"1 running, {words}")
        engine.tell(a_run(2, "queued"))
        await deck.until(lambda: "held" not in deck.screen_text.splitlines()[0], "the header to forget the hold")
