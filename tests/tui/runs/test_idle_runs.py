"""Idle runs in the list: they show for how long, need attention, and become idle without any update."""

from __future__ import annotations

import re
from time import monotonic

import pytest
from subdeck.core.run.need import Need
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.runs.store import CATCH_UP_S, LATE_S, SilenceWatch

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened
from .test_needs_you import began, over


def heard(number: int, seconds_ago: float, patience: float | None = 60.0, **fields: object) -> RunSnapshot:
    return a_run(number, heard_at=monotonic() - seconds_ago, patience=patience, activity="Search finished", **fields)


async def test_a_silent_run_says_so_and_needs_a_person() -> None:
    """An idle run's row has its own sign and words, the header counts it, and `]` goes to it after questions."""
    engine = FakeEngine(heard(1, 367), heard(2, 3), a_run(3), a_run(4), a_run(5))
    async with opened(engine, (160, 30)) as deck:
        await began(deck)
        engine.tell(over(3), over(4, asks=True), over(5, "failed"))
        await deck.until_text("✗ 1 failed  ? 1 question  ◐ 1 idle")
        row = next(line for line in deck.rows(deck.main.runs) if "idle 6:" in line)
        assert "◐ idle" in row
        assert "after Search" in row
        deck.main.runs.select(run_id(2))
        visited: list[str | None] = []
        for _ in range(4):
            await deck.press("]")
            visited.append(deck.main.runs.selected)
        assert visited == [run_id(number) for number in (5, 4, 1, 5)]


async def test_a_run_becomes_silent_by_itself() -> None:
    """The clock makes a run idle, without an update, and counts the seconds."""
    engine = FakeEngine(heard(1, 0), heard(2, 3))
    async with opened(engine) as deck:

        def seconds() -> int:
            found = re.search(r"idle 0:([0-9]{2})", deck.screen_text)
            return int(found[1]) if found else 0

        assert "idle" not in deck.screen_text
        engine.tell(heard(1, 0, 1.5))
        await deck.until(lambda: seconds() >= 2, "the silence")
        first = seconds()
        await deck.until(lambda: seconds() > first, "the next second of it")
        assert "1 idle" in deck.rows(deck.main._header)[0]


async def test_a_sign_of_life_ends_it() -> None:
    """An idle run that writes again is like any other, and may become idle again."""
    engine = FakeEngine(heard(1, 367))
    async with opened(engine) as deck:
        await deck.until_text("1 idle")
        engine.tell(heard(1, 0))
        await deck.until(lambda: "idle" not in deck.screen_text, "the run to be like any other")
        engine.tell(heard(1, 400))
        await deck.until_text("1 idle")


@pytest.mark.parametrize("key", ["m", "enter"])
async def test_a_silence_that_was_looked_at(key: str) -> None:
    """Opening an idle run, or `m`, removes it from attention; it stays idle, and its ending will be unread."""
    engine = FakeEngine(heard(1, 367), heard(2, 3))
    async with opened(engine) as deck:
        await began(deck)
        await deck.until_text("1 idle")
        await deck.press("]", key)
        await deck.until(lambda: not deck.main.run_store.needs, "nobody to be needed")
        assert "idle 6:" in deck.screen_text
        await deck.press("escape")
        engine.tell(over(1))
        await deck.until(lambda: deck.main.run_store.need(run_id(1)) is Need.NEW, "the end as news")


async def test_only_silent_runs() -> None:
    """The filter `is:idle` shows runs as they become idle."""
    async with opened(FakeEngine(heard(1, 0, 1.5), heard(2, 3))) as deck:
        deck.main.runs.filter_by("is:idle")
        await deck.until(
            lambda: deck.main.runs.row_count == 1 and deck.main.runs.selected == run_id(1), "the silent run"
        )


def test_an_app_that_stood_still_accuses_nobody() -> None:
    """After a pause of the app itself, runs are read before any is called idle."""
    watch = SilenceWatch()
    watch.look(100.0)
    for number in (1, 2):
        watch.put(a_run(number, heard_at=90.0, patience=60.0))
    late = 200.0 + LATE_S
    assert watch.look(late) == set()
    watch.put(a_run(1, heard_at=late, patience=60.0))
    assert [watch.look(late + second) for second in (1, CATCH_UP_S)] == [set(), {run_id(2)}]


def test_a_look_without_anybody_due_asks_no_run() -> None:
    """The cost of a tick does not grow with the number of runs."""
    watch = SilenceWatch()
    for number in range(1, 101):
        watch.put(a_run(number, heard_at=100.0 + number, patience=60.0))
    watch._due = None  # pyright: ignore[reportAttributeAccessIssue] - whoever asks it fails
    assert watch.look(160.9) == set()
