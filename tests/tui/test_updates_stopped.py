"""An app whose updates stop says so, and continues with what is on disk by then."""

from __future__ import annotations

import pytest
from subdeck.core.project import resuming

from .deck import opened
from .fake_engine import FakeEngine, a_run, run_id


async def test_updates_that_stop_are_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line says why nothing is updated and when that is tried again; then the rows are as on disk."""
    monkeypatch.setattr(resuming, "LONG_DELAYS_S", (0.5,) * 5)
    engine = FakeEngine(a_run(1), a_run(2), a_run(3, "completed"))
    async with opened(engine) as deck:
        engine.faults = [KeyError(13)]
        await deck.until_text("! Updates stopped: an unexpected error (KeyError). Retrying in 0.5 s")
        engine.runs = {run.run_id: run for run in (a_run(1, "failed"), a_run(2), a_run(4))}
        await deck.until(lambda: "Updates stopped" not in deck.screen_text, "the recovery")
        store = deck.main.run_store
        assert {run.run_id: run for run in store.runs} == engine.runs
        assert [run_id(1)] == engine.claimed
        await deck.until(lambda: deck.toasts, "the end to be reported")
        assert 1 == sum("failed" in toast for toast in deck.toasts)
