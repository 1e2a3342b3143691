"""Grace, TERM, KILL: which step is due when."""

from __future__ import annotations

from subdeck.core.wrapper.escalation import Step, StopEscalation


def steps(ladder: StopEscalation, *times: float) -> list[Step | None]:
    return [ladder.take(now) for now in times]


def test_nothing_asked_for() -> None:
    """A child that nobody wants to end is left alone."""
    ladder = StopEscalation(3.0)
    assert (False, None, [None, None]) == (ladder.climbing, ladder.due(), steps(ladder, 0.0, 1e9))


def test_a_stop() -> None:
    """A stop is TERM at once, KILL after the grace, and KILL again while it is needed."""
    ladder = StopEscalation(3.0)
    ladder.stop(10.0)
    assert [Step.TERM, None, Step.KILL, None, Step.KILL] == steps(ladder, 10.0, 12.9, 13.0, 13.1, 16.0)


def test_a_stop_again_and_again() -> None:
    """Repeating a stop neither brings KILL nearer nor puts it off."""
    ladder = StopEscalation(3.0)
    ladder.stop(10.0)
    assert Step.TERM is ladder.take(10.0)
    for now in (10.5, 11.0, 12.0, 12.9):
        ladder.stop(now)
        assert ladder.take(now) is None
    assert (13.0, Step.KILL) == (ladder.due(), ladder.take(13.0))


def test_force() -> None:
    """Force is KILL at once, also in the middle of a grace."""
    ladder = StopEscalation(3.0)
    ladder.force(10.0)
    assert Step.KILL is ladder.take(10.0)
    ladder = StopEscalation(3.0)
    ladder.stop(10.0)
    ladder.take(10.0)
    ladder.force(10.1)
    assert Step.KILL is ladder.take(10.1)


def test_letting_go() -> None:
    """A child that has finished gets the grace, then TERM, then KILL."""
    ladder = StopEscalation(3.0)
    ladder.begin_grace(10.0)
    assert [None, Step.TERM, None, Step.KILL] == steps(ladder, 12.9, 13.0, 15.9, 16.0)


def test_letting_go_again() -> None:
    """Finishing again does not put the grace off."""
    ladder = StopEscalation(3.0)
    ladder.begin_grace(10.0)
    ladder.begin_grace(12.0)
    assert 13.0 == ladder.due()


def test_staying() -> None:
    """A child that goes on after it seemed to have finished is left alone, as long as nothing was sent."""
    ladder = StopEscalation(3.0)
    ladder.begin_grace(10.0)
    ladder.stay()
    assert (False, None) == (ladder.climbing, ladder.take(20.0))
    ladder.begin_grace(20.0)
    assert Step.TERM is ladder.take(23.0)
    ladder.stay()
    assert Step.KILL is ladder.take(26.0)


def test_a_stop_is_not_taken_back() -> None:
    """What a child writes after a stop does not save it."""
    ladder = StopEscalation(3.0)
    ladder.stop(10.0)
    ladder.stay()
    assert Step.TERM is ladder.take(10.0)
    ladder = StopEscalation(3.0)
    ladder.begin_grace(10.0)
    ladder.stop(11.0)
    ladder.stay()
    assert Step.TERM is ladder.take(11.0)
