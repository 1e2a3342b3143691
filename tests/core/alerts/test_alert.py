"""The alerts that a run's changes produce, and their ids."""

from __future__ import annotations

from typing import Any

import pytest
from subdeck.core.alerts.alert import budget_alert, end_alert, idle_alert, request_alert
from subdeck.core.run.changes import CheckResult
from subdeck.core.run.model import STATUS_OF, LaunchedBy, LauncherKind, RunMeta, RunReason, RunResult
from subdeck.core.run.requests import request_hash

from tests.core.talking import choice, permission
from tests.factories import make_meta

ROOT = "/home/you/shop"
FAILED_CHECK = CheckResult("tests", exit_code=2)


def ended(reason: RunReason, meta: RunMeta | None = None, **fields: Any) -> str | None:
    """Return the kind of the alert of a run that ended like that."""
    meta = meta or make_meta(background=True)
    result = RunResult(run_id=meta.run_id, status=STATUS_OF[reason], reason=reason, written_by="wrapper", **fields)
    alert = end_alert(meta, ROOT, result, at=1.0)
    return alert and alert.kind


@pytest.mark.parametrize(
    ("reason", "fields", "kind"),
    [
        (RunReason.DONE, {"final_text": "It is in auth.py."}, "finished"),
        (RunReason.DONE, {"final_text": "Shall I go on?"}, "needs_input"),
        (RunReason.DONE, {"check": FAILED_CHECK}, "failed"),
        (RunReason.MODEL_ERROR, {"error_message": "overloaded"}, "failed"),
        (RunReason.LOST, {}, "failed"),
        (RunReason.TIMEOUT, {}, "failed"),
        (RunReason.BUDGET, {}, "budget"),
        (RunReason.STOPPED, {}, None),
        (RunReason.KILLED, {}, None),
        (RunReason.CANCELLED, {}, None),
    ],
)
def test_an_end_is_of_a_kind(reason: RunReason, fields: dict[str, Any], kind: str | None) -> None:
    """Each end is reported by its kind, except for one that was requested."""
    assert kind == ended(reason, **fields)


@pytest.mark.parametrize("kind", [LauncherKind.MCP, LauncherKind.PI])
def test_a_result_that_a_parent_waits_for_is_not_for_the_user(kind: LauncherKind) -> None:
    """A result goes to the parent agent that waits for it. The user gets those of background runs, and requests."""
    launched_by = LaunchedBy("s", kind)
    awaited = make_meta(background=False, launched_by=launched_by)
    assert ended(RunReason.DONE, awaited) is None
    assert ended(RunReason.DONE, make_meta(background=True, launched_by=launched_by)) == "finished"
    assert request_alert(awaited, ROOT, permission(), at=1.0).is_urgent


def test_every_process_makes_the_same_id() -> None:
    """An id depends only on the condition: its run, and its request, its end or the event before the silence."""
    meta = make_meta()
    asked = [request_alert(meta, ROOT, permission(number), at=float(at)) for number in (1, 2) for at in (1, 2)]
    assert [f"{meta.run_id}.q1"] * 2 + [f"{meta.run_id}.q2"] * 2 == [alert.id for alert in asked]
    assert idle_alert(meta, ROOT, 7, at=1.0).id == idle_alert(meta, ROOT, 7, at=9.0).id
    assert idle_alert(meta, ROOT, 7, at=1.0).id != idle_alert(meta, ROOT, 9, at=1.0).id
    days = {
        budget_alert(day, project, "$1", at=1.0).id for day in ("2026-11-27", "2026-11-28") for project in ("", ROOT)
    }
    assert 4 == len(days)


def test_a_request_has_all_that_a_reply_needs() -> None:
    """The alert of a request has its id, its hash, its deadline, and the request with every character visible."""
    meta = make_meta(answer_timeout=60.0)
    request = permission(command="rm -rf build\u202e", diff="-a\n+b")
    alert = request_alert(meta, ROOT, request, at=100.0)
    assert alert.asked is not None
    assert (request.id, request_hash(meta.run_id, request), "1970-01-01T00:02:40.000Z") == (
        *(alert.asked.id, alert.asked.hash),
        alert.asked.deadline,
    )
    assert "rm -rf build<U+202E>" == alert.asked.command and "invisible" in alert.what
    assert "+b" in alert.asked.text and "-a\n+b" == alert.asked.diff
    question = request_alert(meta, ROOT, choice(), at=1.0).asked
    assert question and (question.question, question.choices) == ("Which database?", ("SQLite", "PostgreSQL"))
