"""The reply page over all layers: from its forms to the stdin of a real agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Decision, Message, Request
from subdeck.core.run.model import Verdict
from subdeck.core.spec.request import RunRequest

from tests.core.command_line import subdeck
from tests.core.offline_agent.offline_reader import SHOP, write_tree
from tests.factories import events_of, result_of, wait_for_end, write_settings
from tests.waiting import wait_until

from .browsing import serving, words

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

ASKS = "Where is the token checked? Ask me which file."


@pytest.fixture
def engine(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    write_settings(agent="offline", agents={})
    return Engine.open(str(project_dir))


def test_a_reply_reaches_the_agent(engine: Engine, project_dir: Path) -> None:
    """A paired browser finds the question, answers it, and sees its reply count; the run and its log name it."""
    (run,) = engine.launch([RunRequest(task=ASKS)], background=True)
    wait_until(lambda: any(isinstance(event, Request) for event in events_of(engine, run)), "its request")
    with serving(engine) as browser:
        assert 401 == browser.get("/").status
        overview = browser.pair("Pixel 8")
        assert "1 needs input" in overview.heading
        page = browser.get(f"/run/{run.run_id}/q1")
        assert "src/auth.py" in page.document.text("pre")
        choice = page.document.text("fieldset").split().index("src/auth.py") - 2  # after the legend
        result = browser.submit(page, {"choice": str(choice)}, name="verdict", value="reply")
        assert "Reply sent" == result.heading
        assert "Replied by the user on Pixel 8 at 127.0.0.1: src/auth.py" in words(result.text)
        ended = wait_for_end(engine, run.run_id)
        assert "src/auth.py" in (result_of(engine, ended).final_text or "")
        (decision,) = [event for event in events_of(engine, ended) if isinstance(event, Decision)]
        assert ("the user on Pixel 8 at 127.0.0.1", Verdict.REPLY) == (decision.by, decision.verdict)
        assert "by the user on Pixel 8 at 127.0.0.1" in subdeck("logs", run.run_id, cwd=project_dir).out
        shown = browser.get(f"/run/{run.run_id}")
        assert "No model was used" in shown.text
        late = browser.get(f"/run/{run.run_id}/q1")
        assert (410, True) == (late.status, "by the user on Pixel 8" in late.text)


def test_a_message_reaches_a_running_agent(engine: Engine) -> None:
    """The box on a running run's page sends a message, and the result page follows it."""
    (run,) = engine.launch([RunRequest(task=ASKS)], background=True)
    wait_until(lambda: any(isinstance(event, Request) for event in events_of(engine, run)), "its request")
    with serving(engine) as browser:
        browser.pair()
        page = browser.get(f"/run/{run.run_id}")
        form = next(form for form in page.document.forms if form.action.endswith("/message"))
        sent = browser.post(form.action, {**form.fields, "text": "And where is `total`?"})
        assert "Message sent" == sent.heading
        request = browser.get(f"/run/{run.run_id}/q1")
        browser.submit(request, {"choice": "0"}, name="verdict", value="reply")
        ended = wait_for_end(engine, run.run_id)
        (message, *_) = [event for event in events_of(engine, ended) if isinstance(event, Message)]
        assert ("And where is `total`?", "the user on Phone at 127.0.0.1") == (message.text, message.by)
        assert "src/prices.py" in (result_of(engine, ended).final_text or "")
