"""A screen closed before its data has been read drops the result silently."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from subdeck.tui.changes import _screen as changes
from subdeck.tui.detail._reader import DetailReader
from subdeck.tui.launch import _screen as launch
from subdeck.tui.launch._memory import read_memory

from ..changes.test_changes import CHANGES, PATCH
from ..fake_engine import FakeEngine, FakeWork, a_preset, a_run, run_id
from ..open_deck import Deck, opened


def held(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> tuple[threading.Event, threading.Event]:
    """Delay a call; return one event for its start and one that lets it continue."""
    begun, gate, original = threading.Event(), threading.Event(), getattr(owner, name)

    def waiting(*args: Any, **kwargs: Any) -> Any:
        begun.set()
        gate.wait(20)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, waiting)
    return begun, gate


async def at_rest(deck: Deck) -> None:
    def is_at_rest() -> bool:
        return all(worker.is_finished for worker in deck.app.workers if worker.group != "engine")

    await deck.until(is_at_rest, "all work to end")


@pytest.mark.parametrize(
    ("keys", "owner", "name"),
    [
        ("c", FakeWork, "patch"),
        ("c", changes, "colour_parts"),
        ("i", DetailReader, "read"),
        ("V", FakeWork, "side"),
        ("n", launch, "read_facts"),
        ("n", launch, "what_would_fail"),
    ],
)
async def test_what_is_read_for_a_closed_screen(
    monkeypatch: pytest.MonkeyPatch, keys: str, owner: Any, name: str
) -> None:
    """Escape from a screen that is still reading leaves no message about it."""
    runs = [a_run(number, "completed", changes=CHANGES) for number in (1, 2)]
    engine = FakeEngine(*runs, presets=[a_preset("scout")])
    engine.work.patches |= {run.run_id: PATCH.encode() for run in runs}
    begun, gate = held(monkeypatch, owner, name)
    async with opened(engine) as deck:
        if keys == "V":
            await deck.press("space", "down", "space")
        await deck.press(*keys)
        await deck.until(begun.is_set, "the reading")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        gate.set()
        await at_rest(deck)
        assert [] == [toast for toast in deck.toasts if "error" in toast.lower() or "match" in toast.lower()]


async def test_leaving_a_launch_that_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape before the engine gets the launch cancels it and keeps the text."""
    engine = FakeEngine(presets=[a_preset("scout")])
    begun, gate = held(monkeypatch, launch, "read_facts")
    async with opened(engine) as deck:
        await deck.press("n")
        await deck.until(begun.is_set, "the reading")
        await deck.type("look")
        await deck.press("ctrl+s")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        gate.set()
        await at_rest(deck)
        await deck.press("n")
        await deck.until_text("Unsent draft")
        assert "look" in deck.screen_text
        assert ([], []) == (engine.launched, deck.toasts)


class OneThread(ThreadPoolExecutor):
    """The app's only thread from `begin` on, busy until `end`."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked = 0
        """The number of calls handed to the thread."""
        self._gate = threading.Event()

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self.asked += 1
        return super().submit(*args, **kwargs)

    def begin(self) -> None:
        super().submit(self._gate.wait, 20)
        asyncio.get_running_loop().set_default_executor(self)

    def end(self) -> None:
        """Execute the waiting calls."""
        self._gate.set()
        self.shutdown()


async def test_a_draft_outlives_an_app_that_ends_at_once() -> None:
    """A draft is written even if all threads are busy when the user quits."""
    engine, thread = FakeEngine(presets=[a_preset("scout")]), OneThread()
    async with opened(engine) as deck:
        await deck.press("n")
        await deck.type("look")
        await deck.until_text("look")
        await at_rest(deck)
        thread.begin()
        await deck.press("escape")
        await deck.until(lambda: thread.asked, "the draft to be handed to a thread")
    thread.end()
    assert "look" == read_memory(engine.project).draft_of("scout")


async def test_a_stop_outlives_an_app_that_ends_at_once() -> None:
    """A stop requested right before quitting is executed."""
    engine, thread = FakeEngine(a_run(1)), OneThread()
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.run, "the run")
        await at_rest(deck)
        await deck.press("x")
        await deck.until_text("Stop this run?")
        thread.begin()
        await deck.press("y")
        await deck.until(lambda: thread.asked, "the stop to be handed to a thread")
    thread.end()
    assert [((run_id(1),), False)] == engine.stopped
