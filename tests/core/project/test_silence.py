"""When an agent counts as idle: the limit, the signs of life, and the exceptions."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core.cli.run_list import rows, totals
from subdeck.core.engine import Engine
from subdeck.core.project.diagnosis import DiagnosisReader, explain
from subdeck.core.run.events import (
    AssistantText,
    Event,
    Retry,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolResult,
    encode_event,
)
from subdeck.core.run.model import Limits, RunMeta
from subdeck.core.run.open_run import LONG_S, LONGEST_S, OpenRun, Pulse

from tests.core.command_line import subdeck
from tests.factories import make_meta, make_run, open_engine

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def begun(at: datetime = NOON) -> RunStarted:
    return RunStarted(seq=1, ts=stamp(at), pid=1, child_pid=2, attempt=1, max_attempts=1)


def texts(*pauses: float) -> Iterator[Event]:
    """A start, and a text after each of these pauses."""
    at = NOON
    yield begun()
    for pause in pauses:
        at += timedelta(seconds=pause)
        yield AssistantText(ts=stamp(at), text="…")


def call(call_id: str) -> ToolCall:
    return ToolCall(ts=stamp(NOON), tool_call_id=call_id, tool_name="bash", args={})


def result(call_id: str) -> ToolResult:
    return ToolResult(ts=stamp(NOON), tool_call_id=call_id, tool_name="bash", is_error=False, content="")


def pulse_of(events: Iterable[Event]) -> Pulse:
    pulse = Pulse()
    for event in events:
        pulse.apply(event)
    return pulse


@pytest.mark.parametrize(
    ("events", "stall", "patience"),
    [
        ([], None, None),
        ([begun()], None, 60),
        (texts(*[5] * 50), None, 60),
        (texts(*[5] * 18, 40, 40), None, 160),
        (texts(*[5] * 19, 40), None, 60),
        (texts(*[5] * 95, *[300] * 5), None, 60),
        (texts(*[5] * 94, *[300] * 6), None, 1200),
        (texts(30, 30), None, 120),
        (texts(8 * 3600), None, 4 * LONGEST_S),
        (texts(-3600, 3600), None, 4 * LONGEST_S),
        (texts(30, 30), 300, 120),
        (texts(30, 30), 100, 50),
        ([begun(), call("a")], None, None),
        ([begun(), call("a"), call("b"), result("a")], 30, None),
        ([begun(), call("a"), result("a")], None, 60),
        ([begun(), RunEnded(ts=stamp(NOON), status="completed", reason="done")], None, None),
        ([begun(), Retry(ts=stamp(NOON), attempt=1, max_attempts=3, delay_ms=90_000, reason="529")], None, 150),
    ],
)
def test_from_what_on(events: Iterable[Event], stall: float | None, patience: float | None) -> None:
    """The limit is a minute, four times the p95 of earlier pauses, or half the stall; a running tool lifts it."""
    assert pulse_of(events).patience(stall) == patience


def test_a_tool_at_work_is_no_pause() -> None:
    """The time that tools take does not count as the agent's own pauses."""
    late = stamp(NOON + timedelta(hours=1))
    events = [begun(), call("a"), replace(result("a"), ts=late), AssistantText(ts=late, text="…")]
    assert pulse_of(events).patience(None) == 60


def test_what_is_kept_does_not_grow() -> None:
    """Only the number of pauses and the long ones are kept, each length once."""
    pulse = pulse_of(texts(*[LONG_S + number % 10_000 for number in range(30_000)]))
    assert len(pulse._long) <= LONGEST_S
    assert pulse.usual_pause == LONGEST_S


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    (tmp_path / "shop").mkdir()
    return open_engine(tmp_path / "shop")


@pytest.fixture
def quiet(engine: Engine) -> Iterator[RunMeta]:
    """A living run that wrote its last event 367 seconds ago."""
    meta, lock = make_run(engine.project, make_meta(limits=Limits(stall=3600)))
    at = datetime.now(UTC) - timedelta(seconds=367)
    events: tuple[Any, ...] = (begun(at), AssistantText(seq=2, ts=stamp(at), text="Looking around."))
    Path(engine.project.run_dir(meta.run_id), "events.jsonl").write_bytes(b"".join(map(encode_event, events)))
    os.utime(Path(engine.project.active, meta.run_id), (at.timestamp(), at.timestamp()))
    yield meta
    os.close(lock)


def write_sentence(engine: Engine, meta: RunMeta) -> None:
    Path(engine.project.active, meta.run_id).write_bytes(b'{"seq":2,"sentence":"and then"}')


@pytest.mark.processes
def test_status_says_it(engine: Engine, quiet: RunMeta) -> None:
    """`status` shows an idle run in text and JSON, with its idle time and last activity."""
    (run,) = runs = engine.snapshots()
    (line,) = rows(runs)
    assert line.startswith("◐ idle  ")
    assert re.search(r"idle 6:0[789] after Looking around\.", line)
    assert totals(runs) == "1 run: 1 running (1 idle)"
    evidence = DiagnosisReader(engine.project, run.run_id).read(run)
    assert evidence.silence
    assert explain(run, evidence, datetime.now(UTC)).endswith("no tool is running: waiting for the model")
    (document,) = subdeck("status", "--json", cwd=Path(engine.project.root)).document["runs"]
    assert document["status"] == "running"
    assert 367_000 <= document["silentMs"] < 400_000


def test_a_sentence_is_a_sign_of_life(engine: Engine, quiet: RunMeta) -> None:
    """An agent that is writing is not idle, even if its last event is old."""
    write_sentence(engine, quiet)
    (run,) = engine.snapshots()
    assert run.sentence
    assert run.silence(time.monotonic()) is None


def test_a_clock_that_is_set_silences_nobody(engine: Engine, quiet: RunMeta, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle time is measured by a clock that cannot be set and that stops while the machine sleeps."""
    run = OpenRun(engine.project, quiet)
    run.drain()
    write_sentence(engine, quiet)
    later = time.time() + 8 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert run.drain()
    assert run.snapshot().silence(time.monotonic()) is None
    assert run.snapshot().silence(time.monotonic() + 61) is not None


@pytest.mark.parametrize("fields", [{"elsewhere": True}, {"foreign": True}])
def test_nobody_judges_what_is_not_ours(engine: Engine, quiet: RunMeta, fields: dict[str, bool]) -> None:
    """A run that another machine holds, or an untrusted run, is never idle."""
    (run,) = engine.snapshots()
    assert run.silent_from is not None
    assert replace(run, **fields).silent_from is None
