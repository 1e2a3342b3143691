"""What is sent: by the setting `content`, for one alert and for several, as JSON and for ntfy."""

from __future__ import annotations

import json

import pytest
from subdeck.core.alerts.alert import Alert, budget_alert, end_alert, request_alert
from subdeck.core.notify._documents import as_json, as_ntfy, document_of
from subdeck.core.run.model import RunReason, RunResult, RunStatus

from tests.core.talking import permission
from tests.factories import make_meta

META = make_meta(preset="explore-code", task="Where are tokens checked?", background=True)
RESULT = RunResult(
    run_id=META.run_id,
    status=RunStatus.FAILED,
    reason=RunReason.MODEL_ERROR,
    written_by="wrapper",
    error_message="the secret plan failed",
)
ASKED = request_alert(META, "/home/you/shop", permission(command="rm -rf build", diff="+secret"), at=1_790_000_000.0)
SECRETS = ("rm -rf build", "secret", "tokens", "/home/you")


def failed() -> Alert:
    alert = end_alert(META, "/home/you/shop", RESULT, at=1_790_000_001.0)
    assert alert
    return alert


def no_link(_: Alert) -> str:
    return ""


def sent(*alerts: Alert, content: str) -> str:
    return as_json(document_of(alerts, content, no_link)).decode()


def test_title_names_nothing() -> None:
    """With `title` neither preset nor project leave the machine; the run's id does."""
    for alerts in ([ASKED], [failed()], [ASKED, failed()]):
        document = sent(*alerts, content="title")
        assert META.run_id in document
        assert [] == [word for word in (*SECRETS, "explore-code", "shop") if word in document]
    assert "An agent needs input" == json.loads(sent(ASKED, content="title"))["title"]


def test_summary_names_preset_project_and_kind() -> None:
    """With `summary` the command, the diff, the task and the answer stay on the machine."""
    document = sent(ASKED, failed(), content="summary")
    assert [] == [word for word in SECRETS if word in document]
    assert "1 needs input, 1 failed" == json.loads(document)["title"]
    one = json.loads(sent(ASKED, content="summary"))
    assert ("explore-code needs input (shop)", "needs input: a permission request") == (one["title"], one["text"])
    assert ASKED.asked and ASKED.asked.hash == one["alerts"][0]["request"]["hash"]


def test_full_has_everything() -> None:
    """With `full` a document has the command, the diff, the task and the error."""
    document = json.loads(sent(ASKED, content="full"))
    assert all(word in document["text"] for word in ("rm -rf build", "+secret", "tokens"))
    request = document["alerts"][0]["request"]
    assert ("rm -rf build", "+secret") == (request["command"], request["diff"])
    assert "the secret plan failed" in json.loads(sent(failed(), content="full"))["text"]


def test_ids_are_stable() -> None:
    """A document of one alert has its id; one of several has an id made of theirs."""
    assert ASKED.id == document_of([ASKED], "full", no_link).id
    several = document_of([ASKED, failed()], "full", no_link)
    assert several.id == document_of([ASKED, failed()], "title", no_link).id
    assert several.id not in (ASKED.id, failed().id)
    assert [ASKED.id, failed().id] == [part.id for part in several.alerts]


@pytest.mark.parametrize("alerts", [[ASKED], [ASKED, failed()]])
def test_ntfy_gets_a_message(alerts: list[Alert]) -> None:
    """An ntfy server gets topic, title, message, priority and link; a long message is cut."""
    message = json.loads(as_ntfy(document_of(alerts, "full", lambda _: "https://desk.example/"), "agents"))
    assert ("agents", 4, "https://desk.example/") == (message["topic"], message["priority"], message["click"])
    assert message["title"] and message["message"]
    long = request_alert(META, "/shop", permission(command="ä" * 9000), at=1.0)
    assert len(json.loads(as_ntfy(document_of([long], "full", no_link), "agents"))["message"].encode()) < 4096


def test_the_budget_of_a_day() -> None:
    """A daily budget names its project; the figures are only in `full`."""
    alert = budget_alert("2026-11-28", "/home/you/shop", "$20.10 of $20.00", at=1.0)
    document = json.loads(sent(alert, content="summary"))
    assert "The project's budget for today is used up (shop)" == document["title"]
    assert "20.10" not in sent(alert, content="summary") and "$20.10" in sent(alert, content="full")
