"""Actions on runs on hosts, even unreachable ones: abandon, stop, delete, attach."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from subdeck.core.run.placement import Place, PlaceState
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.detail._facts import facts_rows
from subdeck.tui.detail.page import plain_text
from subdeck.tui.dialogs.ask import ConfirmScreen

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened
from ..real_engine import until_screen
from ..runs.test_host_column import a_remote_run


def an_engine(*, elsewhere: bool = True) -> FakeEngine:
    """Return an engine with a run on h07, and an older one of this machine."""
    return FakeEngine(a_run(1, "completed"), a_remote_run(2, elsewhere=elsewhere))


async def confirmed(deck: Deck, key: str, answer: str = "y") -> str:
    """Press a key that asks, and confirm; return the question."""
    await deck.press(key)
    await until_screen(deck, ConfirmScreen)
    await deck.until(lambda: "…" not in deck.screen_text.splitlines()[10], "the question")
    asked = " ".join(deck.screen_text.split())
    await deck.press(answer)
    await deck.until(lambda: deck.app.screen is deck.main, "the deck")
    return asked


async def test_a_run_is_given_up() -> None:
    """After a question that explains it, an abandoned run on an unreachable host ends as lost."""
    engine = an_engine()
    async with opened(engine) as deck:
        asked = await confirmed(deck, ":give_up")
        assert "h07 not seen" in asked
        assert "may still be running" in asked
        await deck.until(lambda: engine.given_up == [run_id(2)], "what the engine was asked")
        await deck.until(lambda: any("Abandoned" in toast for toast in deck.toasts), "the word about it")


async def test_nothing_is_given_up_without_a_yes() -> None:
    """Leaving the question abandons nothing."""
    engine = an_engine()
    async with opened(engine) as deck:
        await confirmed(deck, ":give_up", "n")
        assert [] == engine.given_up


@pytest.mark.parametrize(
    ("engine", "readonly", "expected"),
    [
        (an_engine(elsewhere=False), False, "This run is on h07, which is online. Stop it with x."),
        (FakeEngine(a_run(1)), False, "This run is not on an unreachable host. Stop it with x."),
        (FakeEngine(a_remote_run(1, "completed")), False, "This run is already finished (completed)."),
        (an_engine(), True, "--readonly"),
    ],
)
async def test_what_is_not_given_up(engine: FakeEngine, readonly: bool, expected: str) -> None:
    """A run that can be stopped or has ended is not abandoned, and neither is any run in a read-only app."""
    async with opened(engine, readonly=readonly) as deck:
        await deck.act("give_up")
        await deck.until(lambda: deck.toasts, "the reason")
        assert expected in deck.toasts[-1]
        assert [] == engine.given_up


async def test_marked_runs_are_given_up() -> None:
    """Of the marked runs only the ones on unreachable hosts are abandoned."""
    engine = FakeEngine(a_remote_run(1, elsewhere=True), a_remote_run(2), a_remote_run(3, elsewhere=True))
    async with opened(engine) as deck:
        await deck.act("mark_all")
        asked = await confirmed(deck, ":give_up")
        assert "Abandon 2 runs?" in asked
        await deck.until(lambda: sorted(engine.given_up) == [run_id(1), run_id(3)], "what the engine was asked")


async def test_a_stop_waits_for_the_host() -> None:
    """After a stop of a run on an unreachable host, a toast reports when it will take effect."""
    engine = an_engine()
    async with opened(engine) as deck:
        await confirmed(deck, "x")
        await deck.until(lambda: engine.stopped, "what the engine was asked")
        await deck.until(lambda: deck.toasts, "the word about it")
        assert deck.toasts[-1].endswith(" when h07 is back online")


async def test_deleting_gives_up() -> None:
    """Deleting a run on an unreachable host abandons it, as its question says."""
    engine = an_engine()
    async with opened(engine) as deck:
        asked = await confirmed(deck, "d")
        assert "Its host is unreachable. It is abandoned" in asked
        await deck.until(lambda: engine.deleted == [run_id(2)], "the deletion")
        assert [run_id(2)] == engine.given_up
        assert all(ids == () for ids, _ in engine.stopped)


@pytest.mark.parametrize(
    ("host", "expected"), [("h07", "This run runs on h07 and has no tmux pane"), ("", "This run has no host yet")]
)
async def test_there_is_nothing_to_attach_to(host: str, expected: str) -> None:
    """A run on a host has no pane here: its transcript is shown with the reason."""
    async with opened(FakeEngine(a_remote_run(1, "running" if host else "queued", host=host))) as deck:
        await deck.press("a")
        assert deck.main.panes.zoomed is not None
        assert expected in deck.toasts[-1]


NOW = datetime(2026, 11, 23, 14, 2).astimezone(UTC)
DAY = 24 * 3600.0


def facts_of(run: RunSnapshot, lease: float = DAY) -> str:
    """Return the overview of a run in one line."""
    first, last = facts_rows(run, run.meta, None, None, NOW, 100, lease=lease)
    return " ".join(plain_text([*first, *last]).split())


def away(heard: datetime) -> RunSnapshot:
    at = heard.isoformat().replace("+00:00", "Z")
    place = Place(PlaceState.OUT_OF_REACH, host="h07", since=at, why="no answer", heard_at=at)
    return a_remote_run(1, elsewhere=True, place=place)


def test_the_facts_of_a_place() -> None:
    """The detail shows a run's host and since when, its required resources, and the reason for waiting."""
    place = Place(PlaceState.PLACED, host="h07", since=NOW.isoformat())
    facts = facts_of(a_remote_run(1, place=place, meta_needs={"gpu": 1.0}))
    for expected in ("runner hosts", "requires gpu 1", "host h07", "on host since 2026-11-23"):
        assert expected in facts
    assert "lease left" not in facts
    assert "last seen" not in facts, "a host in reach is heard all the time"
    assert "last seen 2026-11-23" in facts_of(away(NOW))
    waits = a_remote_run(1, "queued", host="", place=Place(PlaceState.WAITS), meta_host="h03", waits_for="host")
    assert "requested host h03" in facts_of(waits)
    assert "host h07" not in facts_of(waits)


@pytest.mark.parametrize(
    ("heard", "lease", "expected"),
    [
        (NOW - timedelta(hours=1), DAY, "lease left about 23h, then the run stops itself"),
        (NOW - timedelta(hours=30), DAY, "lease left expired: run stopped"),
        (NOW - timedelta(hours=30), 0.0, "lease left unlimited: it runs until its host is back"),
    ],
)
def test_the_lease_of_a_run_out_of_reach(heard: datetime, lease: float, expected: str) -> None:
    """For a run on an unreachable host the detail shows how long it may still run."""
    facts = facts_of(away(heard), lease)
    assert "lost contact" in facts
    assert "host report no answer" in facts
    assert expected in facts
