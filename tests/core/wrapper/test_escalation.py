"""Grace, TERM, KILL: the time of each step."""

from __future__ import annotations

from subdeck.core.wrapper._stop_escalation import Step, StopEscalation


def steps(escalation: StopEscalation, *times: float) -> list[Step | None]:
    return [escalation.take(now) for now in times]


def test_nothing_asked_for() -> None:
    """An agent without a stop request is left running."""
    escalation = StopEscalation(3.0)
    assert (False, None, [None, None]) == (escalation.has_begun, escalation.due(), steps(escalation, 0.0, 1e9))


def test_a_stop() -> None:
    """A stop sends TERM at once, KILL after the grace, and KILL again while needed."""
    escalation = StopEscalation(3.0)
    escalation.stop(10.0)
    assert [Step.TERM, None, Step.KILL, None, Step.KILL] == steps(escalation, 10.0, 12.9, 13.0, 13.1, 16.0)


def test_a_stop_again_and_again() -> None:
    """Repeating a stop neither hastens nor delays KILL."""
    escalation = StopEscalation(3.0)
    escalation.stop(10.0)
    assert Step.TERM is escalation.take(10.0)
    for now in (10.5, 11.0, 12.0, 12.9):
        escalation.stop(now)
        assert escalation.take(now) is None
    assert (13.0, Step.KILL) == (escalation.due(), escalation.take(13.0))


def test_force() -> None:
    """Force sends KILL at once, even during a grace."""
    escalation = StopEscalation(3.0)
    escalation.force(10.0)
    assert Step.KILL is escalation.take(10.0)
    escalation = StopEscalation(3.0)
    escalation.stop(10.0)
    escalation.take(10.0)
    escalation.force(10.1)
    assert Step.KILL is escalation.take(10.1)


def test_letting_go() -> None:
    """A finished agent gets the grace, then TERM, then KILL."""
    escalation = StopEscalation(3.0)
    escalation.begin_grace(10.0)
    assert [None, Step.TERM, None, Step.KILL] == steps(escalation, 12.9, 13.0, 15.9, 16.0)


def test_letting_go_again() -> None:
    """Finishing again does not delay the end of the grace."""
    escalation = StopEscalation(3.0)
    escalation.begin_grace(10.0)
    escalation.begin_grace(12.0)
    assert 13.0 == escalation.due()


def test_staying() -> None:
    """An agent that continues after seeming finished is left running, unless a signal was sent."""
    escalation = StopEscalation(3.0)
    escalation.begin_grace(10.0)
    escalation.withdraw_grace()
    assert (False, None) == (escalation.has_begun, escalation.take(20.0))
    escalation.begin_grace(20.0)
    assert Step.TERM is escalation.take(23.0)
    escalation.withdraw_grace()
    assert Step.KILL is escalation.take(26.0)


def test_a_stop_is_not_taken_back() -> None:
    """An agent's output after a stop does not cancel the stop."""
    escalation = StopEscalation(3.0)
    escalation.stop(10.0)
    escalation.withdraw_grace()
    assert Step.TERM is escalation.take(10.0)
    escalation = StopEscalation(3.0)
    escalation.begin_grace(10.0)
    escalation.stop(11.0)
    escalation.withdraw_grace()
    assert Step.TERM is escalation.take(11.0)


def test_giving_up() -> None:
    """The escalation stops after 10 s of KILL; TERM may take the whole grace."""
    escalation = StopEscalation(60.0)
    escalation.stop(0.0)
    steps(escalation, 0.0)
    assert not escalation.gives_up(59.0)
    steps(escalation, 60.0)
    assert [False, True] == [escalation.gives_up(now) for now in (69.9, 70.0)]
