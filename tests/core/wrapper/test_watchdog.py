"""The limits of a run: time, turns, idle time."""

from __future__ import annotations

from subdeck.core.run.model import Limits, RunReason, Usage
from subdeck.core.wrapper._limits import Watchdog


def test_without_limits() -> None:
    """A run without limits has no deadline and exceeds nothing."""
    watchdog = Watchdog(Limits(), 0.0)
    assert (None, None) == (watchdog.due(), watchdog.exceeded(1e9, Usage(turns=10_000), True))


def test_time() -> None:
    """The time limit counts from the start, even if the agent keeps writing."""
    watchdog = Watchdog(Limits(timeout=60.0), 100.0)
    watchdog.heard(159.0, 0)
    assert (160.0, None) == (watchdog.due(), watchdog.exceeded(159.9, Usage(turns=1), True))
    assert RunReason.TIMEOUT is watchdog.exceeded(160.0, Usage(turns=1), False)


def test_turns() -> None:
    """The turn limit ends a run only if the last turn asks for another."""
    watchdog = Watchdog(Limits(max_turns=3), 0.0)
    assert [None, None] == [watchdog.exceeded(1.0, Usage(turns=2), True), watchdog.exceeded(1.0, Usage(turns=3), False)]
    assert RunReason.MAX_TURNS is watchdog.exceeded(1.0, Usage(turns=3), True)


def test_silence() -> None:
    """The stall limit counts from the last byte."""
    watchdog = Watchdog(Limits(stall=10.0), 0.0)
    watchdog.heard(5.0, 0)
    assert (15.0, None) == (watchdog.due(), watchdog.exceeded(14.9, Usage(turns=0), True))
    assert RunReason.STALLED is watchdog.exceeded(15.0, Usage(turns=0), True)


def test_a_tool_may_be_silent() -> None:
    """While a tool runs, a run never stalls."""
    watchdog = Watchdog(Limits(stall=10.0), 0.0)
    watchdog.heard(5.0, 1)
    assert (None, None) == (watchdog.due(), watchdog.exceeded(1000.0, Usage(turns=0), True))
    watchdog.heard(1000.0, 0)
    assert RunReason.STALLED is watchdog.exceeded(1010.0, Usage(turns=0), True)


def test_the_nearest_limit() -> None:
    """The nearest deadline is due first."""
    watchdog = Watchdog(Limits(timeout=60.0, stall=10.0), 0.0)
    assert 10.0 == watchdog.due()
    watchdog.heard(55.0, 0)
    assert 60.0 == watchdog.due()
