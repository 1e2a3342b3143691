"""An app with failed or hung workers reports that, and then continues with the state on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from subdeck.core.run.model import RunnerKind
from subdeck.tui.detail._reader import DetailReader
from subdeck.tui.feed.reader import RunReader
from subdeck.tui.feed.supervision import TICK_S, Supervised, Supervisor
from subdeck.tui.hosts.watch import HostsWatch
from subdeck.tui.runs.live_changes import ChangesWatch
from subdeck.tui.runs.seen import SeenFile
from subdeck.tui.search import contents

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened


class Time:
    """The app's running time, controlled by a test."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self.now = supervisor.clock()
        supervisor.clock = lambda: self.now
        supervisor.tick()  # the time since the last tick does not count for the first step

    def move(self, seconds: float) -> None:
        """Let time pass in steps like the event loop."""
        for _ in range(round(seconds / TICK_S)):
            self.now += TICK_S
            self._supervisor.tick()


async def recover(deck: Deck, time: Time) -> None:
    """Trigger the next attempt, and wait until no worker is reported as stopped."""

    def is_well() -> bool:
        time.move(TICK_S)
        return not deck.main._header.stopped

    await deck.until(is_well, "the recovery")


async def test_updates_that_fail_are_resumed() -> None:
    """After a second the first line gives a failure's reason and its next attempt; then the rows match the disk."""
    engine = FakeEngine(a_run(1), a_run(2), a_run(3, "completed"))
    async with opened(engine) as deck:
        bridge = deck.main.bridge
        time = Time(bridge.supervisor)
        engine.faults = [KeyError(13)]
        await deck.until(lambda: bridge._following.is_waiting, "the failure")
        time.move(0.5)
        await deck.pilot.pause()
        assert "Updates stopped" not in deck.screen_text
        time.move(0.5)
        await deck.until_text("! Updates stopped: an unexpected error (KeyError). Retrying in 1 s")
        engine.runs = {run.run_id: run for run in (a_run(1, "failed"), a_run(2), a_run(4))}
        await recover(deck, time)
        await expect_equal_rows(deck, engine)


async def test_updates_that_hang_are_resumed() -> None:
    """After three seconds without a tick a new worker starts, and later results of the hung one are ignored."""
    engine = FakeEngine(a_run(1), a_run(2), a_run(3, "completed"))
    gate = threading.Event()
    async with opened(engine) as deck:
        bridge = deck.main.bridge
        time = Time(bridge.supervisor)
        engine.hangs = [gate]
        await deck.until(lambda: not engine.hangs, "the worker to hang")
        await deck.until(lambda: not bridge._reading.is_busy, "the transcript, which would hang with the clock")
        bridge._following.beat()
        time.move(2.5)
        assert "" == bridge.supervisor._banner
        time.move(0.5)
        await deck.until_text("! Updates stopped: no response for 3 s. Retrying in 2 s")
        hung = threading.enumerate()
        engine.runs = {run.run_id: run for run in (a_run(1, "failed"), a_run(2), a_run(4))}
        await recover(deck, time)
        gate.set()
        await expect_equal_rows(deck, engine)
        await deck.until(lambda: sum(one.is_alive() for one in hung) < len(hung), "the hung thread to end")
        await expect_equal_rows(deck, engine)


async def expect_equal_rows(deck: Deck, engine: FakeEngine) -> None:
    """Expect the rows to match the disk, and the one ending to have been reported once."""
    store = deck.main.run_store
    await deck.until(lambda: {run.run_id: run for run in store.runs} == engine.runs, "equal rows")
    await deck.until(lambda: engine.claimed == [run_id(1)], "the claim")
    await deck.until(lambda: deck.toasts, "the end to be reported")
    assert 1 == sum("failed" in toast for toast in deck.toasts)


async def test_another_screen_shows_a_toast() -> None:
    """On a screen that hides the first line a toast reports once which worker has stopped."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        time = Time(deck.main.bridge.supervisor)
        await deck.press("c")
        await deck.until(lambda: deck.app.screen is not deck.main, "the changes")
        engine.faults = [KeyError(13)]
        await deck.until(lambda: deck.main.bridge._following.is_waiting, "the failure")
        time.move(1.5)
        await deck.until(lambda: deck.toasts, "the toast")
        assert ["Updates stopped: an unexpected error (KeyError). Retrying in 1 s"] == deck.toasts


async def test_a_suspended_app_has_no_hung_workers() -> None:
    """Time during which the event loop stood still does not count against a worker."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        time = Time(deck.main.bridge.supervisor)
        gate = threading.Event()
        engine.hangs = [gate]
        await deck.until(lambda: not engine.hangs, "the worker to hang")
        time.now += 3600
        deck.main.bridge.supervisor.tick()
        assert "" == deck.main.bridge.supervisor._banner
        gate.set()


WORKERS: dict[str, tuple[Any, str, Callable[[Deck], object], str]] = {
    "transcript": (RunReader, "read", lambda deck: deck.main.bridge.read_on(), "Transcript stopped"),
    "presets": (FakeEngine, "presets", lambda deck: deck.main.bridge._presets.ask(), "Presets stopped"),
    "claims": (FakeEngine, "claim", lambda deck: None, "Notifications stopped"),
    "costs": (FakeEngine, "limited_spending", lambda deck: deck.main.bridge._spending.ask(), "Costs stopped"),
    "hosts": (HostsWatch, "_read", lambda deck: deck.main._hosts.look(), "Host states stopped"),
    "changes": (ChangesWatch, "_changes", lambda deck: deck.main._changing._looking.ask(), "Changes stopped"),
    "search": (contents, "holding", lambda deck: deck.main._contents.seek(frozenset({"look"})), "Search stopped"),
    "marks": (SeenFile, "read", lambda deck: deck.main.runs._marks._working.ask(), "Read marks stopped"),
    "detail": (DetailReader, "read", lambda deck: None, "This run's details stopped"),
}


@pytest.mark.parametrize("fault", ["fails", "hangs"])
@pytest.mark.parametrize("worker", WORKERS)
async def test_each_worker_is_restarted(monkeypatch: pytest.MonkeyPatch, worker: str, fault: str) -> None:
    """A failed or hung worker is named in the banner, restarted after a while, and then does its work."""
    owner, name, ask, banner = WORKERS[worker]
    engine = FakeEngine(a_run(1), a_run(2, meta_runner=RunnerKind.PROCESS))
    original, gate, calls, done = getattr(owner, name), threading.Event(), list[int](), list[int]()
    is_broken = False

    def faulty(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_broken
        if is_broken:
            is_broken = False
            calls.append(1)
            if fault == "fails":
                raise KeyError(13)
            gate.wait(60)
        result = original(*args, **kwargs)
        done.append(1)
        return result

    async with opened(engine) as deck:
        time = Time(deck.main.bridge.supervisor)
        await deck.until(lambda: not deck.main.bridge._reading.is_busy, "the transcript")
        monkeypatch.setattr(owner, name, faulty)
        is_broken = True
        if worker == "detail":
            await deck.press("i")
        elif worker == "claims":
            engine.tell(a_run(1, "completed"))
        ask(deck)
        await deck.until(lambda: calls, "the fault")

        def is_reported() -> bool:
            following = deck.main.bridge._following
            if following._beat_at == deck.main.bridge.supervisor.now:  # only the worker under test fails
                time.move(TICK_S)
            return banner in deck.main._header.stopped

        await deck.until(is_reported, "the banner")
        done.clear()
        await recover(deck, time)
        gate.set()
        assert done


def test_each_failure_in_a_row_waits_longer() -> None:
    """Attempts are made after 2, 4, 8, 16 and 30 seconds, and after 2 again once a minute has passed normally."""
    told: list[str] = []
    now = 0.0
    supervisor = Supervisor(told.append, lambda: now)
    restarts: list[float] = []
    worker = Supervised(supervisor, "Updates stopped", lambda: restarts.append(supervisor.now), lambda: None)

    def run(seconds: float) -> None:
        nonlocal now
        for _ in range(round(seconds / TICK_S)):
            now += TICK_S
            supervisor.tick()

    waits: list[float] = []
    for _ in range(6):
        worker.begin()
        worker.fail(OSError(5, "Input/output error"))
        failed_at, count = supervisor.now, len(restarts)
        while len(restarts) == count:
            run(TICK_S)
        waits.append(restarts[-1] - failed_at)
    assert [2, 4, 8, 16, 30, 30] == waits
    assert "Updates stopped: Input/output error. Retrying in 30 s" in told
    worker.begin()
    for _ in range(140):
        worker.beat()
        run(TICK_S)
    assert "" == told[-1]
    worker.fail(KeyError(13))
    run(1.0)
    assert "Updates stopped: an unexpected error (KeyError). Retrying in 1 s" == told[-1]


def test_a_quick_recovery_shows_nothing() -> None:
    """A failure that has passed within a second is not reported."""
    told: list[str] = []
    now = 0.0
    supervisor = Supervisor(told.append, lambda: now)
    worker = Supervised(supervisor, "Updates stopped", lambda: None, lambda: None)
    worker.begin()
    worker.fail(KeyError(13))
    worker.begin()
    worker.beat()
    for _ in range(6):
        now += TICK_S
        worker.beat()
        supervisor.tick()
    assert [] == told
