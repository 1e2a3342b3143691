"""From a run to the user's command and address: settings, wrapper, spool and sender together."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.alerts import spool
from subdeck.core.engine import Engine
from subdeck.core.run.events import Request
from subdeck.core.run.model import Verdict
from subdeck.core.run.requests import request_hash
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest
from subdeck.core.system import files, processes

from tests import isolation
from tests.factories import events_of, lives, result_of, started, wait_for_end, wait_until_gone, write_settings
from tests.waiting import wait_until

from ..offline_agent.offline_reader import SHOP, write_tree
from .receiver import TIMEOUT, Received, receiving, wait_until_sent

pytestmark = pytest.mark.processes

ASKS = "Where is the token checked? Ask me which file."
COMMAND = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10))"


@pytest.fixture
def project(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    return project_dir


def opened(project: Path, **notifications: Any) -> Engine:
    write_settings(agent="offline", agents={}, notifications=notifications)
    return Engine.open(str(project))


def asking(engine: Engine) -> tuple[RunSnapshot, Request]:
    """Start a run and wait until its agent has a question."""
    (run,) = engine.launch([RunRequest(task=ASKS)], background=True)

    def asked() -> Request | None:
        return next((event for event in events_of(engine, run) if isinstance(event, Request)), None)

    return run, wait_until(asked, "its request")


def test_a_request_reaches_the_address_and_the_command(project: Path, tmp_path: Path) -> None:
    """A request is sent at once by both ways, with everything that a reply needs; then the end is sent."""
    log = tmp_path / "log"
    with receiving() as receiver:
        engine = opened(
            project,
            command=[sys.executable, "-c", COMMAND, str(log)],
            url=receiver.url,
            content="full",
            dwell="0s",
            link="https://desk.example/{run_id}#{request}",
        )
        run, request = asking(engine)
        wait_until(lambda: receiver.documents, "the request at the address")
        wait_until(lambda: log.exists() and log.read_text().endswith("\n"), "the request at the command")
        engine.reply(run.run_id, request.id, Verdict.REPLY, "src/auth.py")
        wait_for_end(engine, run.run_id)
        wait_until(lambda: len(receiver.documents) == 2, "the end at the address")
        wait_until_sent()
    asked, ended = receiver.documents
    assert asked == json.loads(log.read_text().splitlines()[0])
    assert (f"{run.run_id}.{request.id}", True) == (asked["id"], asked["urgent"])
    assert f"https://desk.example/{run.run_id}#{request.id}" == asked["link"]
    (alert,) = asked["alerts"]
    assert ("needs_input", "project", run.run_id) == (alert["kind"], alert["project"], alert["run"])
    assert (request.id, request_hash(run.run_id, request)) == (alert["request"]["id"], alert["request"]["hash"])
    assert request.text in asked["text"]
    assert (f"{run.run_id}.end", "finished") == (ended["id"], ended["alerts"][0]["kind"])


def test_a_killed_sender_is_replaced_by_a_waiting_run(project: Path) -> None:
    """While a run waits for its user, its wrapper starts another sender if one was killed; the id stays the same."""
    refused = threading.Event()

    def answer(_: Received) -> int:
        return 200 if refused.is_set() else TIMEOUT

    with receiving(answer) as receiver:
        engine = opened(project, url=receiver.url)
        run, request = asking(engine)
        wait_until(lambda: receiver.received, "the first attempt")
        (sender,) = senders()
        refused.set()
        os.kill(sender, signal.SIGKILL)
        wait_until(lambda: receiver.documents, "the attempt of another sender")
        assert {f"{run.run_id}.{request.id}"} == {one.key for one in receiver.received}
        engine.stop([run.run_id])
        wait_for_end(engine, run.run_id)
        wait_until_sent()


def test_a_sender_outlives_the_run_that_started_it(project: Path) -> None:
    """A sender that still retries when the run is over is no process of the run: it is not ended with the agent."""
    with receiving(lambda _: 500) as receiver:
        engine = opened(project, url=receiver.url)
        run, _ = asking(engine)
        wait_until(lambda: receiver.received, "the first attempt")
        (sender,) = senders()
        other, request = asking(engine)
        other_id = f"{other.run_id}.{request.id}"
        wait_until(lambda: other_id in {one.key for one in receiver.received}, "the other run's first attempt")
        engine.stop([run.run_id], force=True)
        ended = wait_for_end(engine, run.run_id)
        wait_until_gone(started(engine, run).pid)
        assert (True, ()) == (lives(sender), result_of(engine, ended).not_ended)
        receiver.answer = lambda _: 200
        wait_until_sent()
        engine.stop([other.run_id], force=True)
        wait_for_end(engine, other.run_id)
    assert [other_id] == [document["id"] for document in receiver.documents]


def test_an_answered_request_is_not_tried_again(project: Path) -> None:
    """A request that was answered while its alert could not be delivered is neither sent later nor a failure."""
    with receiving(lambda _: 500) as receiver:
        engine = opened(project, url=receiver.url, when=["needs_input"])
        run, request = asking(engine)
        wait_until(lambda: receiver.received, "the first attempt")
        engine.reply(run.run_id, request.id, Verdict.REPLY, "src/auth.py")
        wait_for_end(engine, run.run_id)
        receiver.answer = lambda _: 200
        wait_until_sent()
    assert ([], []) == (receiver.documents, spool.failures())


def test_a_lost_run_is_reported_by_the_next_process(project: Path) -> None:
    """The process that proves that a wrapper was killed reports the run, once."""
    with receiving() as receiver:
        engine = opened(project, url=receiver.url, when=["failed"], dwell="0s")
        run, _ = asking(engine)
        os.kill(started(engine, run).pid, signal.SIGKILL)
        wait_for_end(engine, run.run_id)
        wait_until(lambda: receiver.documents, "the report")
        wait_until_sent()
        engine.snapshots()
        wait_until_sent()
    (document,) = receiver.documents
    assert ("failed", 1) == (document["alerts"][0]["kind"], len(document["alerts"]))


def test_notifications_begin_while_a_run_is_active(project: Path) -> None:
    """A user who turns notifications on while runs are active is notified about those, too."""
    write_settings(agent="offline", agents={})
    engine = Engine.open(str(project))
    run, request = asking(engine)
    with receiving() as receiver:
        opened(project, url=receiver.url, dwell="0s")
        engine.reply(run.run_id, request.id, Verdict.REPLY, "src/auth.py")
        wait_for_end(engine, run.run_id)
        wait_until(lambda: receiver.documents, "the end at the address")
        wait_until_sent()
    assert [f"{run.run_id}.end"] == [document["id"] for document in receiver.documents]


def senders() -> list[int]:
    """Return the senders of this test."""
    mark = f"{isolation.MARKER}={os.environ[isolation.MARKER]}".encode()
    found = [pid for pid in processes.living() if "--locked" in processes.arguments(pid)]
    return [pid for pid in found if mark in files.content(f"/proc/{pid}/environ").split(b"\0")]
