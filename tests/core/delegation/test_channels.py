"""The four channels: payloads, rate, order, subscribers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core.delegation import report
from subdeck.core.delegation.channels import COMPLETED, CREATED, FAILED, STARTED, Emission, Emitter, ended
from subdeck.core.delegation.report import AgentDetails
from subdeck.core.engine import Engine
from subdeck.core.project.follower import Update
from subdeck.core.run.model import RunReason, RunStatus
from subdeck.core.run.snapshot import Counts, RunSnapshot

from tests.core.conversing import write_preset
from tests.factories import make_result, make_snapshot, open_engine, request, run_to_end, start, wait_for_end
from tests.waiting import wait_until

from .following import Following

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

DETAILS = AgentDetails(
    agent_id="r1", display_name="Looks", description="looks at a.py", subagent_type="scout", status="running",
    tool_uses=2, tokens="12.3k", duration_ms=1500,
)  # fmt: skip


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


@pytest.fixture
def following(engine: Engine) -> Iterator[Following]:
    """Follow an idle project, once its first run is known and over."""
    blocker = start(engine, "wait-for open", "answer ok")
    following = Following(engine)
    wait_until(lambda: following.of(blocker.run_id), "the first emission")
    (Path(engine.project.root) / "open").touch()
    following.ended(blocker.run_id)
    following.seen.clear()
    yield following
    following.close()


def test_payloads_of_ends() -> None:
    """Each channel has its own fields, and both have id and details."""
    details = msgspec.to_builtins(DETAILS)
    done = ended(RunStatus.COMPLETED, DETAILS, make_result("r1", final_text="all well"))
    extras = {"durationMs": 1500, "tokens": "12.3k", "toolUses": 2}
    assert Emission(COMPLETED, {"id": "r1", "result": "all well", **extras, "details": details}) == done
    failed = msgspec.structs.replace(DETAILS, status="error", error="boom")
    assert Emission(
        FAILED, {"id": "r1", "error": "boom", "durationMs": 1500, "toolUses": 2, "details": msgspec.to_builtins(failed)}
    ) == ended(RunStatus.FAILED, failed, make_result("r1", RunReason.MODEL_ERROR))


def test_aborted_goes_to_failed() -> None:
    """Aborted runs have no separate channel."""
    assert FAILED == ended(RunStatus.ABORTED, DETAILS, None).channel
    assert "aborted" == ended(RunStatus.ABORTED, DETAILS, None).payload["error"]


def test_a_run_from_beginning_to_end(engine: Engine, following: Following, project_dir: Path) -> None:
    """created, started, progress, completed come in this order. The first two have type and description."""
    write_preset(project_dir, name="scout")
    (run,) = engine.launch([request("tool read", "wait-for go", "answer done", preset="scout")], background=True)
    wait_until(lambda: following.channels(run.run_id)[1:], "progress")
    (project_dir / "go").touch()
    first, *progress, last = following.ended(run.run_id)
    assert (CREATED, COMPLETED) == (first.channel, last.channel)
    assert {STARTED} == {emission.channel for emission in progress}
    named = {"id": run.run_id, "type": "scout", "description": first.payload["details"]["description"]}
    assert {**named, "details": first.payload["details"]} == first.payload
    assert {**named, "details": progress[0].payload["details"]} == progress[0].payload
    assert all({"id", "details"} == set(emission.payload) for emission in progress[1:])
    assert ("done", 1) == (last.payload["result"], last.payload["toolUses"])
    assert "d" == last.payload["details"]["displayName"]
    assert all(emission.payload["details"]["agentId"] == run.run_id for emission in (first, *progress, last))


def test_the_last_progress_comes_before_the_end(engine: Engine, following: Following) -> None:
    """However fast a run is, its last progress is emitted before its end."""
    run = start(engine, "tool read", "error boom", "finish")
    *_, progress, last = following.ended(run.run_id)
    assert (STARTED, FAILED, "boom") == (progress.channel, last.channel, last.payload["error"])
    entries = last.payload["details"]["entries"]
    assert [entry["kind"] for entry in entries] == [entry["kind"] for entry in progress.payload["details"]["entries"]]


def test_a_stopped_run_fails(engine: Engine, following: Following) -> None:
    """A stopped run is emitted on `failed`, with its status in the details."""
    run = start(engine, "hang")
    engine.stop([run.run_id])
    last = following.ended(run.run_id)[-1]
    assert (FAILED, "aborted") == (last.channel, last.payload["details"]["status"])


def test_progress_carries_the_last_entries(engine: Engine, following: Following, project_dir: Path) -> None:
    """Progress has the last 20 entries and the total number, and the end has all entries."""
    run = start(engine, "say-many 45", "wait-for go", "finish")

    def told() -> dict[str, Any] | None:
        details = [emission.payload["details"] for emission in following.of(run.run_id)]
        return next((each for each in details if each.get("entriesTotal") == 45), None)

    assert 20 == len(wait_until(told, "progress with 45 entries")["entries"])
    (project_dir / "go").touch()
    last = following.ended(run.run_id)[-1].payload["details"]
    assert (45, False) == (len(last["entries"]), "entriesTotal" in last)


def test_all_entries_on_request(engine: Engine, project_dir: Path) -> None:
    """With all entries, progress is complete, and no total is given."""
    run = start(engine, "say-many 45", "wait-for go", "finish")
    following = Following(engine, whole=True)
    wait_until(
        lambda: [each for each in following.of(run.run_id) if len(each.payload["details"].get("entries", ())) == 45],
        "progress with all entries",
    )
    (project_dir / "go").touch()
    assert all("entriesTotal" not in emission.payload["details"] for emission in following.ended(run.run_id))
    following.close()


def test_followers_begin_with_what_is_active(engine: Engine, project_dir: Path) -> None:
    """A late follower gets one `started` for each active run, and nothing about finished ones."""
    over = run_to_end(engine, "answer ok")
    runs = [start(engine, "wait-for go", "answer ok") for _ in range(2)]
    following = Following(engine)
    for run in runs:
        wait_until(lambda run=run: following.of(run.run_id), "the first emission")
        assert (STARTED, "running") == (
            following.seen[0].channel,
            following.of(run.run_id)[0].payload["details"]["status"],
        )
    assert [] == following.of(over.run_id)
    (project_dir / "go").touch()
    for run in runs:
        following.ended(run.run_id)
        assert CREATED not in following.channels(run.run_id)
    following.close()


def test_only_wanted_runs(engine: Engine, project_dir: Path) -> None:
    """A follower of some runs reads nothing of others."""
    one, other = (start(engine, "wait-for go", "answer ok") for _ in range(2))
    following = Following(engine, wanted=lambda meta: meta.run_id == one.run_id)
    wait_until(lambda: following.seen, "the first emission")
    (project_dir / "go").touch()
    wait_for_end(engine, other.run_id)
    following.ended(one.run_id)
    following.close()
    assert [] == following.of(other.run_id)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def update(run: RunSnapshot, *, ended: bool = False) -> Update:
    return Update((run,), (), (run,) if ended else (), Counts(), Counts(), True, False)


QUIET = Update((), (), (), Counts(), Counts(), True, False)
"""A follower's update while nothing happens."""


def test_four_progress_emissions_a_second(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that changes 50 times in a second is emitted 4 times, including its last change."""
    clock = Clock()
    monkeypatch.setattr(report, "time", clock)
    over = run_to_end(engine, "answer ok")
    emitter, told = Emitter(engine), []
    for step in range(51):
        clock.now = 100.0 + step / 50
        run = make_snapshot(over.meta, "running", activity=f"step {step}")
        told += [emission.payload["details"]["activity"] for emission in emitter.take(update(run))]
    assert ["step 0", "step 13", "step 26", "step 39"] == told[:4]
    assert len(told) <= 5
    clock.now += 0.25
    told += [emission.payload["details"]["activity"] for emission in emitter.take(QUIET)]
    assert "step 50" == told[-1]
    assert [] == list(emitter.take(QUIET))


def test_pending_progress_waits_its_turn(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress that comes too early is emitted with a quiet update, after a quarter second."""
    clock = Clock()
    monkeypatch.setattr(report, "time", clock)
    over = run_to_end(engine, "answer ok")
    emitter = Emitter(engine)
    assert 1 == len(list(emitter.take(update(make_snapshot(over.meta, "running")))))
    clock.now += 0.1
    assert [] == list(emitter.take(update(make_snapshot(over.meta, "running", activity="more"))))
    clock.now += 0.1
    assert [] == list(emitter.take(QUIET))
    clock.now += 0.1
    assert 1 == len(list(emitter.take(QUIET)))


def test_a_duration_never_shrinks(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a run reports at least the duration of the progress before it, although its measured time excludes the
    steps after its agent.
    """
    clock = Clock()
    monkeypatch.setattr(report, "time", clock)
    over = run_to_end(engine, "answer ok")
    began = datetime.now(UTC) - timedelta(minutes=5)
    meta = replace(over.meta, created_at=began.isoformat())
    emitter = Emitter(engine)
    (progress,) = emitter.take(update(make_snapshot(meta, "running")))
    done = make_snapshot(meta, "completed", started_at=began.isoformat(), duration_ms=1000)
    *_, ended = emitter.take(update(done, ended=True))
    assert COMPLETED == ended.channel
    assert 300_000 <= progress.payload["details"]["durationMs"] <= ended.payload["durationMs"]
    assert ended.payload["durationMs"] == ended.payload["details"]["durationMs"]


def test_a_run_is_queued_before_it_starts(engine: Engine) -> None:
    """A queued run is created and not yet started."""
    over = run_to_end(engine, "answer ok")
    emitter = Emitter(engine)
    assert [] == list(emitter.take(Update((), (), (), Counts(), Counts(), True, False)))
    queued = make_snapshot(over.meta, "queued")
    assert [CREATED] == [emission.channel for emission in emitter.take(update(queued))]
    running = make_snapshot(over.meta, "running")
    (begun,) = emitter.take(update(running))
    assert (STARTED, "ad hoc") == (begun.channel, begun.payload["type"])


def test_a_run_that_began_and_ended_within_one_update(engine: Engine) -> None:
    """A run first seen at its end is emitted as created and started before. One that never started is not."""
    over = run_to_end(engine, "answer ok")
    emitter = Emitter(engine)
    assert [] == list(emitter.take(Update((), (), (), Counts(), Counts(), True, False)))
    ended_at_once = Update((over,), (), (over,), Counts(), Counts(), True, False)
    assert [CREATED, STARTED, COMPLETED] == [emission.channel for emission in emitter.take(ended_at_once)]
    failed = make_snapshot(over.meta, "failed", reason=RunReason.START_FAILED)
    never = Update((failed,), (), (failed,), Counts(), Counts(), True, False)
    assert [CREATED, FAILED] == [emission.channel for emission in emitter.take(never) if emission.channel != COMPLETED]
