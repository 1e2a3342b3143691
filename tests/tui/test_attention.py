"""The deck tells the sender of notifications whether you are there, and reports what could not be delivered."""

from __future__ import annotations

import pytest
from subdeck.core.alerts import dispatch, spool
from subdeck.core.alerts.alert import Alert
from subdeck.core.alerts.presence import Deck as DeckFile, decks
from subdeck.core.alerts.spool import Channel, Delivery, Document, Progress
from subdeck.core.config.settings import Notifications, Settings
from subdeck.core.run.enumerations import AlertKind
from subdeck.tui.attention import failures_text
from textual.events import AppBlur, AppFocus

from .fake_engine import FakeEngine, a_run, run_id
from .open_deck import Deck, opened


def engine(**notifications: object) -> FakeEngine:
    made = FakeEngine(a_run(1), a_run(2))
    made.settings = Settings(notifications=Notifications(**{"command": ("/bin/true",), **notifications}))  # type: ignore[arg-type]
    return made


def focused(deck: Deck) -> list[bool]:
    return [each.has_focus for each in decks()]


async def test_only_a_reported_focus_counts() -> None:
    """The deck counts as absent until its terminal has reported the focus; a key after a report shows that you are
    there.
    """
    async with opened(made := engine()) as deck:
        await deck.pilot.press("j")
        assert [] == focused(deck)
        deck.app.post_message(AppFocus())
        await deck.until(lambda: focused(deck) == [True], "the focus")
        assert [DeckFile(made.project.root, (), True)] == decks()
        deck.app.post_message(AppBlur())
        await deck.until(lambda: focused(deck) == [False], "the blur")
        await deck.pilot.press("j")
        await deck.until(lambda: focused(deck) == [True], "the key")
    assert [] == decks()


async def test_a_deck_of_some_runs() -> None:
    """A deck that shows some runs only says so."""
    async with opened(engine(), run_id=run_id(1)) as deck:
        deck.app.post_message(AppFocus())
        await deck.until(lambda: [each.runs for each in decks()] == [(run_id(1),)], "the run")
    async with opened(engine(), readonly=True) as deck:
        deck.app.post_message(AppFocus())
        await deck.pilot.press("j")
        assert [] == decks()


async def test_without_notifications_nothing_is_written() -> None:
    """A deck writes no file if notifications are not sent anywhere."""
    async with opened(FakeEngine(a_run(1))) as deck:
        deck.app.post_message(AppFocus())
        await deck.pilot.press("j")
        assert [] == decks()


async def test_what_was_kept_back_is_sent_when_you_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losing the focus, or closing the deck, starts the sender if requests wait for that."""
    starts: list[bool] = []
    monkeypatch.setattr(dispatch, "start_sender", lambda **_: starts.append(decks()[0].has_focus))
    alert = Alert(id="r1.q1", kind=AlertKind.NEEDS_INPUT, at=1.0, what="needs input", run_id="r1")
    async with opened(engine()) as deck:
        deck.app.post_message(AppFocus())
        await deck.until(lambda: focused(deck) == [True], "the focus")
        deck.app.post_message(AppBlur())
        await deck.until(lambda: focused(deck) == [False], "the blur")
        assert [] == starts
        spool.add(alert)
        spool.quieten(alert)
        deck.app.post_message(AppFocus())
        deck.app.post_message(AppBlur())
        await deck.until(lambda: starts == [False], "the sender")
        deck.app.post_message(AppFocus())
        await deck.until(lambda: focused(deck) == [True], "the focus again")
    assert [False, False] == starts


async def test_failures_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notification that could not be delivered is reported once."""
    monkeypatch.setattr("subdeck.tui.app.LOOK_S", 0.02)
    channels = {"url": Channel(progress=Progress.FAILED, fault="status 500")}
    async with opened(engine()) as deck:
        spool.finish(Delivery(1.0, Document(id="r1.q1", title="scout needs input (shop)", text=""), (), channels))
        await deck.until(lambda: "could not be delivered" in deck.screen_text, "the warning")
        spool.finish(Delivery(2.0, Document(id="r2.end", title="scout failed (shop)", text=""), (), channels))
        await deck.until(lambda: "scout failed" in deck.screen_text, "the second warning")
        entries = [text for text in map(str, deck.app.toasts.entries()) if "could not be delivered" in text]
        assert 2 == len(entries)


def test_many_failures_are_counted() -> None:
    """A warning names a few failures, and counts the rest."""
    text = failures_text([f"title {number}" for number in range(5)])
    assert "5 notifications could not be delivered:\ntitle 0\ntitle 1\ntitle 2\nand 2 more" in text
