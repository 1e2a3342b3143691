"""`subdeck notify`: a test of the user's settings, and the notifications that failed; doctor reports these too."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from subdeck.core.alerts import spool
from subdeck.core.alerts.spool import Channel, Delivery, Document, Progress
from subdeck.core.doctor import State, examine

from tests.core.command_line import subdeck
from tests.core.notify.receiver import receiving, wait_until_sent
from tests.core.notify.test_plan import asked
from tests.factories import write_settings

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]


def fail() -> None:
    """Leave a delivery that was given up."""
    channels = {"url": Channel(progress=Progress.FAILED, tries=20, fault="push.example answered with status 500")}
    spool.finish(Delivery(1.0, Document(id="r1.q1", title="scout needs input (shop)", text=""), (), channels))


def test_a_test_is_shown_and_sent(project_dir: Path, tmp_path: Path) -> None:
    """The test shows what each way gets, without secret values, and sends it."""
    log, headers = tmp_path / "log", tmp_path / "headers"
    headers.write_text("Authorization: Bearer abc\n")
    headers.chmod(0o600)
    code = f"import sys; open({str(log)!r}, 'w').write(sys.stdin.read())"
    with receiving() as receiver:
        settings = {"command": [sys.executable, "-c", code], "url": receiver.url, "headers_file": str(headers)}
        write_settings(notifications=settings)
        done = subdeck("notify", "--test", cwd=project_dir)
    assert 0 == done.code, done
    (body,) = receiver.documents
    assert body == json.loads(log.read_text()) and "a test needs input (shop)" == body["title"]
    assert f"POST {receiver.url}" in done.out and "Authorization: …" in done.out and "Bearer" not in done.out
    assert 2 == done.out.count("✓ sent") and "Bearer abc" == receiver.received[0].headers["Authorization"]


def test_a_test_that_fails(project_dir: Path) -> None:
    """A way that fails is named with the reason, and the exit code is 1; only a success clears earlier failures."""
    fail()
    with receiving(lambda _: 500) as receiver:
        write_settings(notifications={"url": receiver.url})
        done = subdeck("notify", "--test", "--json", cwd=project_dir)
        assert (1, False) == (done.code, done.document["ok"])
        assert "status 500" in done.document["attempts"][0]["fault"]
        assert 1 == len(spool.failures())
        receiver.answer = lambda _: 200
        assert 0 == subdeck("notify", "--test", "--json", cwd=project_dir).code
    assert [] == spool.failures()


def test_without_settings(project_dir: Path) -> None:
    """Without a command and an address there is nothing to test."""
    done = subdeck("notify", "--test", cwd=project_dir)
    assert 2 == done.code and "notifications are not set up" in done.err


def test_failures_are_reported(project_dir: Path) -> None:
    """The command and doctor name what could not be delivered."""
    write_settings(notifications={"command": ["/bin/true"]})
    done = subdeck("notify", cwd=project_dir)
    assert (0, "No notifications waiting.\n") == (done.code, done.out)
    fail()
    done = subdeck("notify", cwd=project_dir)
    assert 1 == done.code and "scout needs input (shop): url: push.example answered with status 500" in done.out
    (check,) = [check for check in examine(str(project_dir)) if check.name == "notify"]
    assert (State.WARN, "subdeck notify --test") == (check.state, check.fix)
    assert "1 notification could not be delivered; the last one: push.example answered" in check.detail


def test_what_waits_is_sent(project_dir: Path) -> None:
    """An alert whose sender was killed is sent by the next command that looks."""
    write_settings(notifications={"command": ["/bin/true"]})
    spool.add(asked())
    done = subdeck("notify", "--json", cwd=project_dir)
    assert 1 == done.document["waiting"]
    wait_until_sent()


def test_a_list_of_runs_replaces_a_killed_sender(project_dir: Path) -> None:
    """A command that reads runs starts a sender if one was killed."""
    with receiving() as receiver:
        write_settings(notifications={"url": receiver.url})
        spool.add(asked())
        assert 0 == subdeck("status", cwd=project_dir).code
        wait_until_sent()
    assert ["r1.q1"] == [document["id"] for document in receiver.documents]
