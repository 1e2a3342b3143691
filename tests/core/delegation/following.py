"""The emissions of a followed project, collected in a thread."""

from __future__ import annotations

import threading
from typing import Any

from subdeck.core.delegation.channels import COMPLETED, FAILED, Emission, Emitter
from subdeck.core.engine import Engine

from tests.waiting import wait_until


class Following:
    """Collects the emissions of a project in a thread."""

    def __init__(self, engine: Engine, **how: Any) -> None:
        self.seen: list[Emission] = []
        self.stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(engine, how))
        self._thread.start()

    def _follow(self, engine: Engine, how: dict[str, Any]) -> None:
        emitter = Emitter(engine, **how)
        for update in engine.updates(self.stop):
            self.seen += emitter.take(update)

    def channels(self, run_id: str) -> list[str]:
        return [emission.channel for emission in self.of(run_id)]

    def of(self, run_id: str) -> list[Emission]:
        return [emission for emission in tuple(self.seen) if emission.payload["id"] == run_id]

    def ended(self, run_id: str) -> list[Emission]:
        """Wait for a run's end. Return all its emissions."""
        wait_until(lambda: {COMPLETED, FAILED} & set(self.channels(run_id)), "the end on a channel")
        return self.of(run_id)

    def close(self) -> None:
        self.stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
