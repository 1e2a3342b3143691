"""The channels for people: requests, replies, idle and waiting runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core.delegation import channels
from subdeck.core.delegation.channels import (
    COMPLETED,
    CREATED,
    IDLE,
    NEEDS_INPUT,
    QUEUED,
    REPLIED,
    STARTED,
    Emission,
    Emitter,
)
from subdeck.core.engine import Engine
from subdeck.core.project.follower import Update
from subdeck.core.run.describe import moment
from subdeck.core.run.documents import request_document
from subdeck.core.run.enumerations import WaitsFor
from subdeck.core.run.events import AssistantText, Decision, Request
from subdeck.core.run.model import RunMeta, RunStatus, Verdict
from subdeck.core.run.snapshot import Counts, RunSnapshot

from tests.core.talking import Listening, choice, listening, permission
from tests.factories import changed, make_snapshot, open_engine
from tests.waiting import wait_until

from .following import Following

FOR_PEOPLE = (QUEUED, NEEDS_INPUT, REPLIED, IDLE)
QUIET = Update((), (), (), Counts(), Counts(), True, False)


def update(run: RunSnapshot) -> Update:
    return Update((run,), (), (), Counts(), Counts(), True, False)


def told(emitter: Emitter, news: Update) -> list[Emission]:
    """Return its emissions for people."""
    return [emission for emission in emitter.take(news) if emission.channel in FOR_PEOPLE]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


@pytest.fixture
def following(engine: Engine) -> Iterator[Following]:
    following = Following(engine)
    yield following
    following.close()


def a_meta(engine: Engine) -> RunMeta:
    with listening(engine.project) as run:
        return run.meta


def seen(following: Following, run: Listening, channel: str, count: int = 1) -> list[dict[str, Any]]:
    """Wait for emissions on this channel; return their payloads."""

    def payloads() -> list[dict[str, Any]] | None:
        found = [emission.payload for emission in following.of(run.run_id) if emission.channel == channel]
        return found if len(found) >= count else None

    return wait_until(payloads, f"{count} on {channel}")


def test_requests_and_replies_in_order(engine: Engine, following: Following) -> None:
    """Each request and each decision is emitted once, with what a person decides on, and who decided it."""
    with listening(engine.project, answer_timeout=60.0) as run:
        run.write(permission(1), choice(2))
        first, second = seen(following, run, NEEDS_INPUT, 2)
        snapshot = engine.snapshots((run.run_id,))[0]
        document = request_document(snapshot.requests[0], run.run_id, run.meta.cwd)
        assert msgspec.to_builtins(document) == first["request"]
        assert ("q1", "permission") == (first["requestId"], first["kind"])
        assert ("q2", "choice", 2) == (second["requestId"], second["kind"], second["open"])
        asked, deadline = moment(first["request"]["at"]), moment(first["deadline"])
        assert asked and deadline and 60 == round((deadline - asked).total_seconds(), 3)
        assert "running" == first["details"]["status"]
        run.write(Decision(request="q1", verdict=Verdict.DENY, text="not now", by="operator"))
        (denied,) = seen(following, run, REPLIED)
        wanted = {"requestId": "q1", "verdict": "deny", "text": "not now", "by": "operator", "open": 1}
        assert wanted == {name: denied[name] for name in wanted}
        run.write(Decision(request="q2", verdict=Verdict.REPLY, text="SQLite", by="operator"))
        assert ["q1", "q2"] == [payload["requestId"] for payload in seen(following, run, REPLIED, 2)]
        assert 2 == len(seen(following, run, NEEDS_INPUT))


def test_a_request_without_a_time_limit(engine: Engine, following: Following) -> None:
    """Without a reply timeout there is no deadline, and control characters stay exact in the request."""
    with listening(engine.project) as run:
        run.write(permission(command="printf '\x1b[2J'"))
        (asked,) = seen(following, run, NEEDS_INPUT)
        assert (None, "printf '\x1b[2J'") == (asked["deadline"], asked["request"]["command"])
        assert "\x1b" not in asked["request"]["display"]


def test_only_open_requests_are_news_at_first(engine: Engine) -> None:
    """Whoever begins to follow learns what is open now, and not what was decided before."""
    with listening(engine.project) as run:
        run.write(permission(1), permission(2), Decision(request="q1", verdict=Verdict.ALLOW, by="operator"))
        following = Following(engine)
        try:
            (asked,) = seen(following, run, NEEDS_INPUT)
            assert ("q2", 1) == (asked["requestId"], asked["open"])
            run.write(Decision(request="q2", verdict=Verdict.ALLOW, by="operator"))
            (reply,) = seen(following, run, REPLIED)
            assert ("q2", 0) == (reply["requestId"], reply["open"])
            assert [STARTED, NEEDS_INPUT] == following.channels(run.run_id)[:2]
            assert 1 == following.channels(run.run_id).count(NEEDS_INPUT)
        finally:
            following.close()


def test_a_rule_that_allows_a_call_is_no_news(engine: Engine, following: Following) -> None:
    """A call that a rule decided without a request is not a reply."""
    with listening(engine.project) as run:
        run.write(Decision(verdict=Verdict.ALLOW, by="rule", rule="bash(ls *)"), permission(1))
        seen(following, run, NEEDS_INPUT)
        assert REPLIED not in following.channels(run.run_id)


def test_what_is_asked_at_the_very_end_comes_before_the_end(engine: Engine) -> None:
    """A run first seen at its end still emits its requests and replies, in order, and its end last."""
    with listening(engine.project) as run:
        emitter = Emitter(engine)
        list(emitter.take(QUIET))
        run.write(permission(1), Decision(request="q1", verdict=Verdict.ALLOW, by="operator"))
        over = make_snapshot(run.meta, "completed", started_at="2026-01-01T00:00:00.000Z")
        ended = Update((over,), (), (over,), Counts(), Counts(), True, False)
        assert [CREATED, STARTED, NEEDS_INPUT, REPLIED, COMPLETED] == [each.channel for each in emitter.take(ended)]


def test_progress_after_a_request_is_not_lost(engine: Engine) -> None:
    """Events that were read for a request are in a later progress report."""
    with listening(engine.project) as run:
        emitter = Emitter(engine)
        snapshot = engine.snapshots((run.run_id,))[0]
        list(emitter.take(update(snapshot)))
        run.write(AssistantText(text="Now I ask."), permission(1))
        asked: Request = permission(1)
        assert [NEEDS_INPUT] == [each.channel for each in told(emitter, update(changed(snapshot, requests=(asked,))))]

        def progress() -> list[Emission]:
            return [each for each in emitter.take(QUIET) if each.channel == STARTED]

        (report,) = wait_until(progress, "the progress report")
        assert ["Now I ask."] == [entry["text"] for entry in report.payload["details"]["entries"]]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_an_idle_run_is_told_once_per_silence(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is idle once it has written nothing for its patience, and again only after it has written something."""
    clock = Clock()
    monkeypatch.setattr(channels, "time", clock)
    emitter = Emitter(engine)
    running = make_snapshot(a_meta(engine), "running", heard_at=clock.now, patience=30.0)
    assert [] == told(emitter, update(running))
    clock.now += 30.0
    (idle,) = told(emitter, QUIET)
    assert (IDLE, 30_000) == (idle.channel, idle.payload["idleMs"])
    clock.now += 60.0
    assert [] == told(emitter, QUIET)
    assert [] == told(emitter, update(changed(running, heard_at=clock.now)))
    clock.now += 31.0
    assert [31_000] == [each.payload["idleMs"] for each in told(emitter, QUIET)]
    asking = changed(running, heard_at=clock.now, patience=None)
    clock.now += 90.0
    assert [] == told(emitter, update(asking))


def test_a_run_that_has_to_wait_is_told_once(engine: Engine) -> None:
    """A queued run is told when it has to wait, with what it waits for; not while its wrapper is only starting."""
    emitter = Emitter(engine)
    list(emitter.take(QUIET))
    queued = make_snapshot(a_meta(engine), "queued")
    assert [] == told(emitter, update(queued))
    waits = changed(queued, waits_for=WaitsFor.SLOT, ahead=2)
    (waiting,) = told(emitter, update(waits))
    assert (QUEUED, "slot", 2, False) == (
        waiting.channel, *(waiting.payload[name] for name in ("waitsFor", "ahead", "paused"))
    )  # fmt: skip
    assert RunStatus.QUEUED == waiting.payload["details"]["status"]
    assert [] == told(emitter, update(replace(waits, state=replace(waits.state, ahead=1))))
