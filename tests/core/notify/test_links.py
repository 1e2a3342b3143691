"""Links in notifications: to the reply page, with and without a paired device, or to a page of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.alerts.alert import budget_alert
from subdeck.core.alerts.spool import SENDING, Document, directory
from subdeck.core.config.notification_settings import Notifications
from subdeck.core.engine import Engine
from subdeck.core.notify._documents import document_of
from subdeck.core.notify._links import links, with_tokens
from subdeck.core.run.events import Decision
from subdeck.core.web.devices import Devices

from tests.core.web.browsing import serving
from tests.factories import events_of, wait_for_end, write_settings
from tests.waiting import wait_until

from ..offline_agent.offline_reader import SHOP, write_tree
from .receiver import Received, receiving, wait_until_sent
from .test_all_layers import asking
from .test_documents import ASKED, META, failed

ROOT, ORIGIN = "/home/you/shop", "https://box.example"
PAGE = f"{ORIGIN}/run/{META.run_id}"


def made(link: str | None = None) -> Document:
    return document_of([failed(), ASKED], "title", links(Notifications(link=link)))


def test_a_page_of_your_own() -> None:
    """The run and the request are filled into the user's link; several alerts lead to the one that is urgent."""
    Devices().set_origin(ROOT, ORIGIN)
    document = made("https://desk.example/{run_id}/{request}")
    assert f"https://desk.example/{META.run_id}/q1" == document.link
    assert f"https://desk.example/{META.run_id}/" == document.alerts[0].link


def test_the_reply_page_of_the_project() -> None:
    """Without a setting a link leads to the project's page, if that was ever started: to the request or to the run."""
    assert ["", ""] == [part.link for part in made().alerts]
    Devices().set_origin("/home/you/other", ORIGIN)
    assert ["", ""] == [part.link for part in made().alerts]
    Devices().set_origin(ROOT, ORIGIN)
    assert [PAGE, f"{PAGE}/q1"] == [part.link for part in made().alerts]
    budget = budget_alert("2026-11-28", ROOT, "", at=1.0)
    assert ORIGIN == document_of([budget], "title", links(Notifications())).link


def test_a_token_is_made_for_each_attempt() -> None:
    """A link without a paired device is for its one request, and new in each attempt; other links stay."""
    Devices().set_origin(ROOT, ORIGIN)
    document = made()
    first, second = with_tokens(document), with_tokens(document)
    assert (PAGE, document.id) == (first.alerts[0].link, first.id)
    tokens = [one.link.removeprefix(f"{ORIGIN}/link/") for one in (first, second)]
    assert first.link == first.alerts[1].link and tokens[0] != tokens[1]
    for token in tokens:
        link = Devices().link(token)
        assert link and (META.run_id, "q1") == (link.run_id, link.request)


@pytest.mark.processes
@pytest.mark.parametrize("are_allowed", [True, False])
def test_a_notification_is_answered(project_dir: Path, monkeypatch: pytest.MonkeyPatch, are_allowed: bool) -> None:
    """The link in a notification opens the request. If the setting allows it, it replies without a paired device. No
    token is ever stored.
    """
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    stored: list[str] = []

    def receive(_: Received) -> int:
        stored.extend(path.read_text() for path in Path(directory(SENDING)).iterdir())
        return 200

    with receiving(receive) as receiver:
        write_settings(agent="offline", agents={}, notifications={"url": receiver.url}, web={"links": are_allowed})
        engine = Engine.open(str(project_dir))
        with serving(engine) as browser:
            Devices().set_origin(engine.project.root, browser.origin)
            run, _ = asking(engine)
            wait_until(lambda: receiver.documents, "the notification")
            path = receiver.documents[0]["link"].removeprefix(browser.origin)
            assert are_allowed == path.startswith("/link/")
            if not are_allowed:
                assert 401 == browser.get(path).status
                browser.pair()
            page = browser.get(path)
            assert "src/auth.py" in page.document.text("pre")
            result = browser.submit(page, {"choice": "0"}, name="verdict", value="reply")
            assert "Reply sent" == result.heading
            ended = wait_for_end(engine, run.run_id)
        wait_until_sent()
    (decision,) = [event for event in events_of(engine, ended) if isinstance(event, Decision)]
    assert decision.by.startswith("the user with a link" if are_allowed else "the user on Phone")
    assert stored and not any("/link/" in content for content in stored)
