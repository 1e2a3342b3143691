"""The work of the sender: a fake clock, and attempts that this test answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from subdeck.core.alerts import spool
from subdeck.core.alerts.alert import Alert
from subdeck.core.alerts.pending import pending
from subdeck.core.alerts.presence import Deck, Presence
from subdeck.core.alerts.spool import Delivery
from subdeck.core.config.notification_settings import Notifications
from subdeck.core.notify._plan import GIVE_UP_S, INTERVAL_S
from subdeck.core.notify._sender import Work
from subdeck.core.paths import project_key, state_file
from subdeck.core.project.read_marks import SEEN, SINCE, line
from subdeck.core.system.files import write_state

from tests.factories import write_settings

from .test_plan import asked, ended

AT = 1_790_000_000.0
"""The fake time at which everything begins."""
ROOT = "/home/you/shop"


class Ways:
    """The user's command and address: attempts wait until this test answers them."""

    def __init__(self) -> None:
        self.tried: list[tuple[str, str]] = []
        """Channel and document of each attempt."""
        self._open: list[Callable[[str], None]] = []

    def attempt(self, channel: str, settings: Notifications, delivery: Delivery, report: Callable[[str], None]) -> None:
        self.tried.append((channel, delivery.id))
        self._open.append(report)

    def answer(self, fault: str = "") -> None:
        """Let all open attempts end."""
        while self._open:
            self._open.pop()(fault)


@pytest.fixture
def ways() -> Ways:
    set_up()
    return Ways()


def set_up(**others: object) -> None:
    write_settings(notifications={"url": "http://127.0.0.1:1/", **others})


def started(ways: Ways, now: float = AT) -> Work:
    """Start a sender; an earlier one was killed."""
    work = Work(ways.attempt)
    work.begin(now)
    return work


def sent(ways: Ways, channel: str = "url") -> list[str]:
    return [document for name, document in ways.tried if name == channel]


def at(alert: Alert, seconds: float = 0.0) -> Alert:
    from msgspec.structs import replace

    return replace(alert, at=AT + seconds, project=ROOT)


def test_an_alert_is_sent_once(ways: Ways) -> None:
    """A request is attempted at once; after its success nothing is left, and the same condition is not sent again."""
    spool.add(at(asked()))
    work = started(ways)
    assert work.step(AT) is None and work.is_busy
    assert ["r1.q1"] == sent(ways)
    ways.answer()
    assert work.step(AT) is None and not work.is_busy
    assert not pending()
    assert not spool.add(at(asked()))
    assert work.step(AT + 100) is None
    assert ["r1.q1"] == sent(ways)


def test_conditions_of_several_runs_are_one_delivery(ways: Ways) -> None:
    """What is due at the same time is sent together, and later what waited for its dwell time."""
    for number in range(3):
        spool.add(at(asked(run=f"r{number}")))
    spool.add(at(ended(run="r7")))
    work = started(ways)
    assert AT + 5.0 == work.step(AT)
    ways.answer()
    work.step(AT + 5.0)
    ways.answer()
    work.step(AT + 5.0)
    first, second = sent(ways)
    assert first.startswith("batch.") and second == "r7.end"
    assert not pending()


def test_a_failed_attempt_is_repeated_for_ten_minutes(ways: Ways) -> None:
    """Retries have the same id and become rarer; after ten minutes the delivery has failed, and stays visible."""
    spool.add(at(asked()))
    work, now = started(ways), AT
    while True:
        next_at = work.step(now)
        ways.answer("no answer")
        if (next_at := work.step(now)) is None:
            break
        assert now < next_at <= AT + GIVE_UP_S
        now = next_at
    assert AT + GIVE_UP_S == now
    assert {"r1.q1"} == set(sent(ways)) and 10 < len(sent(ways)) < 30
    assert not pending() and not spool.add(at(asked()))
    (failure,) = spool.failures()
    assert ("r1.q1", "no answer") == (failure.id, failure.channels["url"].fault)
    spool.forget_failures()
    assert [] == spool.failures()


def test_each_way_is_on_its_own(ways: Ways) -> None:
    """A way that succeeded is not used again while the other one is retried."""
    set_up(command=["my-notify"])
    spool.add(at(asked()))
    work = started(ways)
    work.step(AT)
    assert {("command", "r1.q1"), ("url", "r1.q1")} == set(ways.tried)
    ways._open[0]("")
    ways._open[1]("no answer")
    ways._open.clear()
    assert AT + 1.0 == work.step(AT)
    work.step(AT + 1.0)
    assert (["r1.q1"], ["r1.q1"] * 2) == (sent(ways, "command"), sent(ways))


def test_a_killed_sender_resends_only_what_is_unknown(ways: Ways) -> None:
    """The next sender repeats attempts without an outcome, with the same id, and no others."""
    spool.add(at(asked(run="r1")))
    spool.add(at(asked(run="r2")))
    started(ways).step(AT)
    (batch,) = sent(ways)
    work = started(ways, AT + 1)
    work.step(AT + 1)
    assert [batch] * 2 == sent(ways)
    ways.answer()
    work.step(AT + 1)
    started(ways, AT + 2).step(AT + 2)
    assert [batch] * 2 == sent(ways)


def test_a_record_of_success_is_final(ways: Ways) -> None:
    """A sender that was killed right after it had recorded a success leaves nothing to resend."""
    spool.add(at(asked()))
    work = started(ways)
    work.step(AT)
    ways.answer()
    work._take_outcomes(AT)  # killed here: the delivery is still in the spool
    assert pending()
    started(ways).step(AT)
    assert ["r1.q1"] == sent(ways) and not pending()


def test_a_condition_found_again_is_not_sent_again(ways: Ways) -> None:
    """An alert added at the moment in which the same one was finished is dropped."""
    spool.add(at(asked()))
    work = started(ways)
    work.step(AT)
    assert spool.add(at(asked()))  # it is on its way, and not done yet
    ways.answer()
    work.step(AT)
    work.step(AT + INTERVAL_S)
    assert ["r1.q1"] == sent(ways) and not pending()


def test_a_withdrawn_request_is_not_sent(ways: Ways) -> None:
    """A request that was answered while it waited is not sent."""
    spool.add(at(asked(1)))
    work = started(ways)
    work.step(AT)
    ways.answer()
    spool.add(at(asked(2), 1))
    assert AT + INTERVAL_S == work.step(AT + 1)
    spool.withdraw("r1.q2")
    assert work.step(AT + 2) is None
    assert ["r1.q1"] == sent(ways)


def test_a_decided_request_is_not_tried_again(ways: Ways) -> None:
    """A request that was answered between two attempts is neither sent again nor a failure."""
    spool.add(at(asked(1)))
    work = started(ways)
    work.step(AT)
    ways.answer("no answer")
    assert AT + 1.0 == work.step(AT)
    spool.settle("r1.q1", "r1", AT + 0.5)
    assert work.step(AT + 1.0) is None
    assert (["r1.q1"], False) == (sent(ways), work.is_busy)
    assert not pending() and [] == spool.failures() and not spool.add(at(asked(1)))


def test_a_decided_request_in_a_batch_is_tried_again(ways: Ways) -> None:
    """A delivery with another open request is still due."""
    spool.add(at(asked(run="r1")))
    spool.add(at(asked(run="r2")))
    work = started(ways)
    work.step(AT)
    ways.answer("no answer")
    work.step(AT)
    spool.settle("r1.q1", "r1", AT + 0.5)
    work.step(AT + 1.0)
    assert 2 == len(sent(ways))


def test_the_minute_counts_across_senders(ways: Ways) -> None:
    """A new sender knows when the last one sent something."""
    spool.add(at(asked(1)))
    work = started(ways)
    work.step(AT)
    ways.answer()
    work.step(AT)
    spool.add(at(asked(2), 30))
    assert AT + INTERVAL_S == started(ways, AT + 30).step(AT + 30)


def test_a_read_result_is_not_sent(ways: Ways) -> None:
    """A result that was marked as read within the dwell time is not sent."""
    spool.add(at(ended()))
    work = started(ways)
    assert AT + 5.0 == work.step(AT)
    write_state(state_file("seen", project_key(ROOT)), line(SINCE, "2026") + line(SEEN, "r1"))
    assert work.step(AT + 5.0) is None
    assert [] == sent(ways) and not spool.add(at(ended()))


def test_a_request_waits_while_the_user_is_at_the_deck(ways: Ways) -> None:
    """A deck with the focus keeps a request back, without a process that waits; the next sender sends it."""
    presence = Presence(Deck(ROOT, has_focus=True))
    spool.add(at(asked()))
    spool.add(at(ended(run="r2")))
    work = started(ways)
    work.step(AT)
    assert work.step(AT + 5.0) is None
    assert [] == sent(ways) and spool.has_quiet() and not pending()
    presence.show(Deck(ROOT))
    started(ways).step(AT + 9.0)
    presence.close()
    assert ["r1.q1"] == sent(ways)


def test_settings_are_read_when_they_are_needed(ways: Ways) -> None:
    """The user may turn notifications on, change them and turn them off while runs are active."""
    spool.add(at(asked(1)))
    set_up(when=["failed"])
    work = started(ways)
    assert work.step(AT) is None and [] == sent(ways)
    set_up(command=["my-notify"])
    spool.add(at(asked(2), 1))
    work.step(AT + 1)
    assert ["r1.q2"] == sent(ways, "command")
    ways.answer("no answer")
    set_up()
    work.step(AT + 2)
    work.step(AT + 3)
    assert (["r1.q2"], ["r1.q2"] * 2) == (sent(ways, "command"), sent(ways))


def test_old_records_are_removed(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a condition is kept for a day."""
    spool.add(at(asked()))
    work = started(ways)
    work.step(AT)
    ways.answer()
    work.step(AT)
    import time

    spool.prune(time.time() + spool.KEPT_S - 60)
    assert spool.is_done("r1.q1")
    spool.prune(time.time() + spool.KEPT_S + 60)
    assert not spool.is_done("r1.q1")
