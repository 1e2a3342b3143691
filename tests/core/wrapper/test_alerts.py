"""The alerts that a wrapper queues while its run goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from subdeck.core.alerts import dispatch, spool
from subdeck.core.alerts.alert import Alert
from subdeck.core.alerts.wanted import budgets
from subdeck.core.budget.ledger import LedgerEntry, append, local_day
from subdeck.core.engine import Engine
from subdeck.core.notify._current import CurrentSettings
from subdeck.core.paths import Project
from subdeck.core.run.events import AssistantText, ToolCall
from subdeck.core.run.open_run import FACTOR, LEAST_S, usual_patience
from subdeck.core.wrapper._alerts import Alerts

from tests.core.talking import Listening, listening
from tests.factories import write_settings


@pytest.fixture(autouse=True)
def starts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Count the senders that would be started."""
    started: list[object] = []
    monkeypatch.setattr(dispatch, "_start", lambda lock: started.append(lock) or os.getpid())
    return started


@pytest.fixture
def run(project: Project) -> Iterator[Listening]:
    set_up()
    with listening(project) as run:
        yield run


def set_up(**others: object) -> None:
    """Turn notifications on, and let a sender read the settings."""
    write_settings(notifications={"command": ["/bin/true"]}, **others)
    CurrentSettings().read()


def alerts_of(run: Listening) -> Alerts:
    return Alerts(run.meta, str(run.directory), lambda pid: None)


def queued() -> list[str]:
    return sorted(spool.read_all(spool.QUEUE, Alert, {}))


def test_a_silence_is_reported_once(run: Listening) -> None:
    """An agent that has been idle for longer than usual is reported once; that is taken back when it continues."""
    alerts = alerts_of(run)
    for now in (1000.0, 1000.0 + LEAST_S - 1):
        alerts.look_for_silence(now, 1000.0, 7, is_quiet=True)
    assert [] == queued()
    for now in (1000.0 + LEAST_S, 2000.0):
        alerts.look_for_silence(now, 1000.0, 7, is_quiet=True)
    assert [f"{run.run_id}.idle-7"] == queued()
    alerts.look_for_silence(2001.0, 2001.0, 8, is_quiet=True)
    assert [] == queued()
    alerts.look_for_silence(2001.0 + LEAST_S, 2001.0, 8, is_quiet=True)
    assert [f"{run.run_id}.idle-8"] == queued()


def test_an_agent_that_waits_is_not_idle(run: Listening) -> None:
    """While a tool runs or the user is asked, nothing is idle."""
    alerts_of(run).look_for_silence(5000.0, 1000.0, 7, is_quiet=False)
    assert [] == queued()


def test_the_usual_pauses_of_an_agent_count(run: Listening) -> None:
    """An agent that often pauses is given longer, as in the list of runs; pauses of tools do not count."""
    assert LEAST_S == usual_patience(str(run.directory), None)
    assert 10.0 == usual_patience(str(run.directory), 20.0)
    at = datetime.now(UTC)
    for number in range(20):
        run.write(AssistantText(text="x", ts=(at + timedelta(seconds=40 * number)).isoformat()))
    assert FACTOR * 40.0 == usual_patience(str(run.directory), None)
    call = ToolCall(tool_call_id="1", tool_name="bash", args={}, ts=(at + timedelta(seconds=800)).isoformat())
    run.write(call)
    assert FACTOR * 40.0 == usual_patience(str(run.directory), None)


def test_daily_budgets_are_reported_once(run: Listening, project: Project) -> None:
    """The wrapper whose spending uses up the budget of the day, or of its project, reports that once a day."""
    set_up(budget={"day": 20, "projects": {project.root: 5}})
    alerts, day = alerts_of(run), local_day()
    append(day, [LedgerEntry(run.run_id, project.root, spent=4.99)])
    alerts.spent()
    assert [] == queued()
    append(
        day,
        [LedgerEntry(run.run_id, project.root, spent=5.01), LedgerEntry("20260101-000000-aaaaaa", "/other", spent=9.0)],
    )
    alerts.spent()
    (first,) = queued()
    alerts.spent()
    append(day, [LedgerEntry("20260101-000000-bbbbbb", "/other", spent=9.0)])
    alerts.spent()
    assert {first, f"budget.{day}.all"} == {*queued()} and first.startswith(f"budget.{day}.")
    texts = {alert.text for alert in spool.read_all(spool.QUEUE, Alert, {}).values()}
    assert {"$5.01 of $5.00", "$23.01 of $20.00"} == texts


def test_changed_settings_are_read_first(run: Listening, starts: list[object]) -> None:
    """A wrapper does not know the budgets in settings that no sender has read: it lets one read them."""
    write_settings(notifications={"command": ["/bin/true"]}, budget={"day": 1})
    append(local_day(), [LedgerEntry(run.run_id, "/shop", spent=2.0)])
    alerts = alerts_of(run)
    alerts.spent()
    assert (1, [], None) == (len(starts), queued(), budgets())
    CurrentSettings().read()
    alerts.spent()
    assert [f"budget.{local_day()}.all"] == queued()


def test_commands_and_the_app_report_budgets(project: Project) -> None:
    """Whoever computes today's spending reports a budget that is used up, also one of the project's own file."""
    set_up()
    with open(project.settings_file, "w") as file:
        file.write("budget: {project: 3}\n")
    append(local_day(), [LedgerEntry("20260101-000000-aaaaaa", project.root, spent=3.5)])
    Engine.open(project.root, readonly=True).limited_spending()
    assert [] == queued()
    Engine.open(project.root).limited_spending()
    Engine.open(project.root).limited_spending()
    (alert,) = spool.read_all(spool.QUEUE, Alert, {}).values()
    assert (project.root, "$3.50 of $3.00") == (alert.project, alert.text)


def test_without_settings_nothing_is_looked_up(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a settings file a wrapper reads nothing for alerts."""
    monkeypatch.setattr("subdeck.core.run.open_run.usual_patience", lambda *_: pytest.fail("it looks"))
    with listening(project) as run:
        alerts = alerts_of(run)
        alerts.look_for_silence(5000.0, 1000.0, 7, is_quiet=True)
        alerts.spent()
    assert not os.path.exists(spool.directory())
