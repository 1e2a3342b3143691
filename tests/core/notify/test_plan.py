"""Which alerts are due: a fake clock instead of waiting."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from subdeck.core.alerts.alert import Alert, OpenRequest
from subdeck.core.notify._plan import INTERVAL_S, Decision, Rules, again_after, decide
from subdeck.core.run.enumerations import AlertKind

USUAL = Rules(
    when=frozenset(AlertKind),
    dwell=5.0,
    last_sent={},
    is_watched=lambda _: False,
    is_read=lambda _: False,
    is_over=lambda _: False,
)
ASKED = OpenRequest(id="q1", hash="h", kind="permission", text="wants to run a command")


def asked(number: int = 1, at: float = 100.0, run: str = "r1") -> Alert:
    return Alert(id=f"{run}.q{number}", kind=AlertKind.NEEDS_INPUT, at=at, what="needs input", run_id=run, asked=ASKED)


def ended(at: float = 100.0, kind: AlertKind = AlertKind.FINISHED, run: str = "r1") -> Alert:
    return Alert(id=f"{run}.end", kind=kind, at=at, what="finished", run_id=run)


def decided(alerts: list[Alert], now: float, **rules: Any) -> Decision:
    return decide(alerts, replace(USUAL, **rules), now)


def test_requests_go_at_once_and_the_rest_after_a_while() -> None:
    """A request is due at once, another condition after the dwell time."""
    decision = decided([asked(), ended()], 100.0)
    assert ([asked()], 105.0) == (decision.due, decision.next_at)
    decision = decided([ended()], 105.0)
    assert ([ended()], None) == (decision.due, decision.next_at)


def test_one_kind_of_a_run_waits_for_a_minute() -> None:
    """Within 60 s after a delivery, further alerts of its run and kind wait; others do not."""
    sent = {("r1", AlertKind.NEEDS_INPUT): 100.0}
    others = [asked(2, 110.0, "r2"), ended(90.0)]
    decision = decided([asked(1, 110.0), asked(2, 120.0), *others], 130.0, last_sent=sent)
    assert ([ended(90.0), asked(2, 110.0, "r2")], 100.0 + INTERVAL_S) == (decision.due, decision.next_at)
    decision = decided([asked(1, 110.0), asked(2, 120.0)], 160.0, last_sent=sent)
    assert [asked(1, 110.0), asked(2, 120.0)] == decision.due


def test_the_users_settings_count() -> None:
    """A kind that is not in the settings is dropped."""
    decision = decided([asked(), ended()], 200.0, when={AlertKind.FINISHED})
    assert ([ended()], [asked()]) == (decision.due, [alert for alert, _ in decision.dropped])


def test_a_read_result_is_dropped() -> None:
    """A result that was looked at in the meantime is not sent, nor is a request that is no longer open."""
    decision = decided([asked(), ended()], 101.0, is_read=lambda alert: alert == ended())
    assert ([asked()], [ended()]) == (decision.due, [alert for alert, _ in decision.dropped])
    decision = decided([asked()], 101.0, is_over=lambda _: True)
    assert ([], [asked()]) == (decision.due, [alert for alert, _ in decision.dropped])


def test_silence_while_the_user_is_at_the_deck() -> None:
    """A request waits until the user leaves the deck; anything else is dropped, but not before it is due."""
    decision = decided([asked(), ended()], 104.0, is_watched=lambda _: True)
    assert ([], [asked()], [], 105.0) == (decision.due, decision.quiet, decision.dropped, decision.next_at)
    decision = decided([ended()], 105.0, is_watched=lambda _: True)
    assert ([], [ended()]) == (decision.due, [alert for alert, _ in decision.dropped])


def test_a_clock_that_was_set_back() -> None:
    """An alert from the future waits no longer than others do."""
    decision = decided([ended(9000.0)], 100.0)
    assert 105.0 == decision.next_at
    decision = decided([asked(1, 9000.0)], 100.0, last_sent={("r1", AlertKind.NEEDS_INPUT): 9000.0})
    assert 100.0 + INTERVAL_S == decision.next_at


def test_attempts_become_rarer() -> None:
    """The waits between attempts grow up to a minute."""
    assert [1.0, 2.0, 4.0, 60.0] == [again_after(tries) for tries in (1, 2, 3, 20)]
