"""Follows an engine's updates in a thread, as the app's bridge does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from subdeck.core.engine import Engine
from subdeck.core.project.follower import Update
from subdeck.core.run.snapshot import RunSnapshot

from tests.waiting import wait_until


class Followed:
    """Collects an engine's updates that have news, as the app's bridge does."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.runs: dict[str, RunSnapshot] = {}
        self.turns = 0

    def take(self, update: Update) -> None:
        self.runs |= {run.run_id: run for run in update.runs}
        for run_id in update.removed:
            self.runs.pop(run_id, None)
        self.updates.append(update)

    @property
    def ended(self) -> list[str]:
        return [run.run_id for update in self.updates for run in update.ended]

    def wait_for(self, run_id: str, condition: Callable[[RunSnapshot], object], what: str) -> RunSnapshot:
        wait_until(lambda: run_id in self.runs and condition(self.runs[run_id]), what)
        return self.runs[run_id]


@contextmanager
def following(engine: Engine, **how: Any) -> Iterator[Followed]:
    """Follow in a thread from the first update on."""
    followed, stop = Followed(), threading.Event()

    def iterate() -> None:
        for update in engine.updates(stop, **how):
            followed.turns += 1
            if not update.is_quiet:
                followed.take(update)

    thread = threading.Thread(target=iterate)
    thread.start()
    try:
        wait_until(lambda: followed.updates, "the first update")
        yield followed
    finally:
        stop.set()
        thread.join()
