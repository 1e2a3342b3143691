"""The place of runs on other machines, as every reader of their files sees it."""

from __future__ import annotations

import fcntl
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.cli._foreground import place_line
from subdeck.core.delegation.results import run_fields
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.project.diagnosis import Evidence, explain
from subdeck.core.project.queue import read_state
from subdeck.core.project.registry import Registry, count
from subdeck.core.run import artifacts, describe, placement
from subdeck.core.run.artifacts import RunnerFacts
from subdeck.core.run.events import RunStarted, encode_event
from subdeck.core.run.markdown import run_markdown
from subdeck.core.run.model import RunMeta, RunnerKind, RunReason, RunStatus, StopReason, StopRequest, WaitsFor
from subdeck.core.run.placement import Permit, Place, PlaceState, give_permit, write_place
from subdeck.core.run.snapshot import Queued, RunSnapshot
from subdeck.core.system import files

from tests.core.command_line import Done, subdeck
from tests.factories import (
    ahead_of,
    make_finished,
    make_meta,
    make_result,
    make_run,
    make_snapshot,
    open_engine,
    write_runner,
)

TODAY = datetime.now().astimezone().replace(hour=14, minute=2, second=0, microsecond=0)
ON_H07 = Place(PlaceState.PLACED, host="h07", since=paths.now_iso())
GONE = Place(PlaceState.OUT_OF_REACH, host="h07", heard_at=TODAY.isoformat())
PERMIT = Permit(spool="5" * 32, host="h07", at=paths.now_iso())
PLACE_HOLDER = RunnerFacts(kind=RunnerKind.HOSTS, pid=1, pid_started=None, host="", boot_id="", pid_namespace="")
BEGAN = (TODAY - timedelta(minutes=1)).isoformat()
STARTED = RunStarted(seq=1, ts=BEGAN, pid=1, child_pid=1, attempt=1, max_attempts=1)


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def remote(**fields: Any) -> RunMeta:
    return make_meta(runner=RunnerKind.HOSTS, **fields)


def remote_run(
    engine: Engine, at: Place | None = None, *, permit: bool = True, started: bool = False, **fields: Any
) -> tuple[str, int]:
    """Make an unfinished run of another machine as its launcher and the relay leave it.

    Return its id and the descriptor that holds its lock, as the relay holds it while the host is online.
    """
    meta, lock = make_run(engine.project, remote(**fields))
    run_dir = engine.project.run_dir(meta.run_id)
    write_runner(run_dir, PLACE_HOLDER)
    if permit:
        give_permit(run_dir, PERMIT)
    if at:
        write_place(run_dir, at)
    if started:
        Path(run_dir, paths.EVENTS).write_bytes(encode_event(STARTED))
    return meta.run_id, lock


def output(engine: Engine, *words: str) -> Done:
    return subdeck(*words, cwd=Path(engine.project.root))


def seen(engine: Engine, run_id: str) -> RunSnapshot:
    (run,) = engine.snapshots((run_id,))
    return run


@pytest.mark.parametrize(
    ("status", "fields", "words"),
    [
        ("queued", {"waits_for": WaitsFor.HOST, "ahead": 12}, "queued · waiting for a host (12 ahead)"),
        ("queued", {"waits_for": WaitsFor.HOST}, "queued · waiting for a host"),
        (
            "queued",
            {"waits_for": WaitsFor.HOST, "ahead": 3, "place": Place(PlaceState.WAITS, why="no host has gpu")},
            "queued · no host has gpu",
        ),
        ("running", {"place": ON_H07}, "running · h07"),
        ("running", {"place": GONE, "elsewhere": True}, "unknown · h07 not seen since 14:02"),
        (
            "running",
            {"place": replace(GONE, why="h07 no longer knows the run"), "elsewhere": True},
            "unknown · h07 no longer knows the run",
        ),
        (
            "queued",
            {"place": replace(GONE, state=PlaceState.PLACED, why="h07 has no free slot yet"), "elsewhere": True},
            "unknown · h07 not seen since 14:02",
        ),
        ("queued", {"place": replace(ON_H07, why="h07 has no free slot yet")}, "queued · h07 has no free slot yet"),
        ("running", {"place": replace(ON_H07, why="h07 has no free slot yet")}, "running · h07"),
        ("queued", {"place": GONE, "elsewhere": True}, "unknown · h07 not seen since 14:02"),
        ("running", {"place": GONE, "elsewhere": True, "stop_waits": True}, "unknown · stops when h07 is back"),
        ("completed", {"place": ON_H07}, "completed · h07"),
        ("failed", {"place": ON_H07, "late": RunStatus.COMPLETED}, "failed · finished later on h07: completed"),
    ],
)
def test_words(status: str, fields: dict[str, Any], words: str) -> None:
    """A run on another machine has the same words for state and host everywhere."""
    assert words == describe.status_line(make_snapshot(remote(), status, **fields))


def test_words_of_a_host_that_was_asked_for() -> None:
    """A run for one host waits for that host, even if others are free."""
    run = make_snapshot(remote(host="h07"), "queued", waits_for=WaitsFor.HOST, ahead=2)
    assert describe.status_line(run) == "queued · waiting for h07 (2 ahead)"


@pytest.mark.parametrize(
    ("status", "fields", "line"),
    [
        ("queued", {"waits_for": WaitsFor.HOST, "ahead": 12}, "◌ queued · waiting for a host"),
        ("queued", {"place": ON_H07}, "on h07"),
        ("running", {"place": ON_H07}, "on h07"),
        ("running", {"place": GONE, "elsewhere": True}, "◇ unknown · h07 not seen since 14:02"),
        ("completed", {"place": ON_H07}, ""),
    ],
)
def test_who_waits_for_a_run_is_told_where_it_is(status: str, fields: dict[str, Any], line: str) -> None:
    """`subdeck run` shows why nothing happens yet, and which host the run is on."""
    assert line == place_line(make_snapshot(remote(), status, **fields))


def test_words_of_another_day() -> None:
    """A host last seen on another day is shown with the date."""
    heard = TODAY - timedelta(days=3)
    run = make_snapshot(remote(), "running", elsewhere=True, place=replace(GONE, heard_at=heard.isoformat()))
    assert describe.whereabouts(run) == f"h07 not seen since {heard:%Y-%m-%d} 14:02"


def test_last_word_of_a_host() -> None:
    """A host counts as seen when its run last wrote, even if the relay noted its place earlier."""
    run = make_snapshot(
        remote(), "running", elsewhere=True, place=GONE, last_event_at=f"{TODAY:%Y-%m-%d}T14:30:00{TODAY:%z}"
    )
    assert describe.whereabouts(run) == "h07 not seen since 14:30"


def test_parents_are_told_the_host() -> None:
    """A parent agent gets the host of its run; a local run has none."""
    there = run_fields(make_snapshot(remote(), "running", place=ON_H07))
    assert there["host"] == "h07"
    assert "host" not in run_fields(make_snapshot(make_meta(), "running"))


def test_run_of_this_machine_has_no_whereabouts() -> None:
    """The words for a local run have no host, even if another machine holds it."""
    held = make_snapshot(make_meta(), "running", elsewhere=True)
    assert ["", "running", "◇ running"] == [
        describe.whereabouts(held),
        describe.status_line(held),
        describe.state(held),
    ]


def test_foreign_text_of_a_place_is_made_plain() -> None:
    """A host's name or reason can neither move the cursor nor fill the screen."""
    waits = Queued(WaitsFor.HOST)
    hostile = Place(PlaceState.WAITS, why="no\x1b[2J\nhost" + "x" * 5000)
    named = make_snapshot(remote(), "running", place=Place(PlaceState.PLACED, host="h\x1b]0;x\x07" + "7" * 5000))
    run = make_snapshot(remote(), "queued", waits_for=waits.waits_for, place=hostile)
    for words in (describe.whereabouts(run), describe.status_line(named), describe.doing(run)):
        assert words.isprintable()
        assert len(words) < 300


def test_waits_for_a_host(engine: Engine) -> None:
    """A run without a permit has not started: it is queued, even if its lock is held."""
    run_id, lock = remote_run(engine, Place(PlaceState.WAITS), permit=False)
    held = seen(engine, run_id)
    os.close(lock)
    assert held == seen(engine, run_id)
    assert (Queued(WaitsFor.HOST), False) == (held.state, held.elsewhere)
    assert describe.doing(held) == "waiting for a host"


def test_no_relay_has_taken_it_up(engine: Engine) -> None:
    """Before a relay has written about a run, it waits for a host."""
    run_id, lock = remote_run(engine, permit=False)
    os.close(lock)
    assert (Queued(WaitsFor.HOST), None) == (seen(engine, run_id).state, seen(engine, run_id).place)


def test_vouched_for_or_out_of_reach(engine: Engine) -> None:
    """With a permit the lock decides: a held run is running on its host, a free one is unknown, never lost."""
    run_id, lock = remote_run(engine, ON_H07, started=True)
    vouched = seen(engine, run_id)
    os.close(lock)
    alone = seen(engine, run_id)
    assert [("running · h07", False), ("unknown", True)] == [
        (describe.status_line(vouched), vouched.elsewhere),
        (describe.status_line(alone).partition(" · ")[0], alone.elsewhere),
    ]
    assert not os.path.exists(f"{engine.project.run_dir(run_id)}/{paths.RESULT}")


def test_out_of_reach_is_counted(engine: Engine) -> None:
    """Unreachable runs count as running, and have their own count."""
    _, one = remote_run(engine, ON_H07, started=True)
    _, other = remote_run(engine, GONE)
    os.close(other)
    make_finished(engine.project)
    runs = engine.snapshots()
    counts = count(runs)
    assert (3, 2, 1, 1, 1) == (counts.total, counts.running, counts.queued, counts.completed, counts.out_of_reach)
    assert describe.counted(counts) == "3 runs: 2 running (1 queued), 1 completed · 1 unreachable"
    assert msgspec.to_builtins(counts)["outOfReach"] == 1
    os.close(one)


def test_stop_waits_for_the_host(engine: Engine) -> None:
    """A stop request to an unreachable run is shown as waiting for its host."""
    run_id, lock = remote_run(engine, GONE, started=True)
    os.close(lock)
    assert describe.whereabouts(seen(engine, run_id)) == "h07 not seen since 14:02"
    request = StopRequest(by="operator", force=False, at=paths.now_iso(), reason=StopReason.STOPPED)
    artifacts.write_stop(engine.project.run_dir(run_id), request)
    assert describe.whereabouts(seen(engine, run_id)) == "stops when h07 is back"


def test_change_of_place_is_seen(engine: Engine) -> None:
    """A follower sees that a run was placed, even without other changes."""
    run_id, lock = remote_run(engine, Place(PlaceState.WAITS), permit=False)
    registry = Registry(engine.project, by=None)
    registry.look((run_id,), prove=True)
    assert registry.grown_ids == set()
    write_place(engine.project.run_dir(run_id), ON_H07)
    assert registry.grown_ids == {run_id}
    assert registry.look((run_id,)) == {run_id}
    run = registry.get(run_id)
    assert run
    assert (ON_H07, Queued()) == (run.place, run.state)
    assert registry.grown_ids == set()
    os.close(lock)


def test_hosts_have_a_queue_of_their_own(engine: Engine) -> None:
    """Runs that wait for a host and runs that wait for a local slot are in separate queues."""
    _, there = remote_run(engine, Place(PlaceState.WAITS), permit=False, max_running=1)
    here, lock = make_run(engine.project, make_meta(max_running=1))
    assert ahead_of(seen(engine, here.run_id)) == 0
    assert [0, 0] == [ahead_of(run) for run in engine.snapshots()]
    os.close(there)
    os.close(lock)


@pytest.mark.processes
def test_runs_of_hosts_are_moved_and_held(engine: Engine) -> None:
    """Runs that wait for a host are in the queue's list, move among themselves, and are paused with all."""
    ages = [f"2026-01-01T00:00:0{number}.000Z" for number in range(3)]  # or else two may have the same millisecond
    waits = Place(PlaceState.WAITS)
    made = [remote_run(engine, waits, permit=False, max_running=1, created_at=at) for at in ages]
    (one, two, three), locks = [run_id for run_id, _ in made], [lock for _, lock in made]
    here, lock = make_run(engine.project, make_meta(max_running=1))
    assert [0, 1, 2] == [ahead_of(seen(engine, run_id)) for run_id in (one, two, three)]
    document = output(engine, "queue", three, "--up", "--hold", "--json").document
    assert {one: 0, three: 1, two: 2, here.run_id: 0} == {run["runId"]: run["ahead"] for run in document["runs"]}
    assert [True] * 4 == [run["held"] for run in document["runs"]]
    assert describe.status_line(seen(engine, three)) == "queued · queue paused (1 ahead)"
    assert 0 == engine.move_in_queue(here.run_id, 1)
    assert [one, three, two] == [run_id for run_id in read_state(engine.project.slots).order if run_id != here.run_id]
    engine.hold_queue(False)
    assert describe.status_line(seen(engine, three)) == "queued · waiting for a host (1 ahead)"
    write_place(engine.project.run_dir(one), Place(PlaceState.WAITS, why="no host has gpu", passed_over=True))
    assert [0, 0, 1] == [ahead_of(seen(engine, run_id)) for run_id in (one, three, two)]
    write_place(engine.project.run_dir(one), ON_H07)
    with pytest.raises(SubdeckError, match="is not waiting in the queue"):
        engine.move_in_queue(one, 1)
    for descriptor in (*locks, lock):
        os.close(descriptor)


def test_broken_place(engine: Engine) -> None:
    """A run with a damaged place is shown without one."""
    run_id, lock = remote_run(engine, ON_H07, started=True)
    Path(engine.project.run_dir(run_id), paths.PLACE).write_bytes(b'{"state": 3')
    assert describe.status_line(seen(engine, run_id)) == "running"
    os.close(lock)


def test_finished_runs_of_this_machine_look_for_no_place(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing finished local runs reads no places of hosts."""
    for _ in range(3):
        make_finished(engine.project)
    asked: list[str] = []
    monkeypatch.setattr(placement, "read_place", asked.append)
    assert len(engine.snapshots()) == 3
    assert asked == []


def test_finished_elsewhere(engine: Engine) -> None:
    """A finished run shows the host it ran on."""
    meta = make_finished(engine.project, remote())
    write_place(engine.project.run_dir(meta.run_id), ON_H07)
    run = seen(engine, meta.run_id)
    assert ("completed · h07", "h07") == (describe.status_line(run), run.host)
    assert " · on h07" in explain(run, Evidence(), datetime.now(UTC))


def test_late_result(engine: Engine) -> None:
    """An abandoned run shows its host's late result, even to a reader that saw it as lost."""
    meta = make_finished(engine.project, remote(), reason=RunReason.LOST, written_by="operator", final_text=None)
    write_place(engine.project.run_dir(meta.run_id), GONE)
    registry = Registry(engine.project, by=None)
    registry.look((meta.run_id,))
    assert registry.lost_on_hosts == {meta.run_id}
    late = Path(engine.project.run_dir(meta.run_id), paths.LATE_RESULT)
    late.write_bytes(msgspec.json.encode(make_result(meta.run_id)))
    assert registry.look(registry.lost_on_hosts) == {meta.run_id}
    run = registry.get(meta.run_id)
    assert run
    assert ("failed · finished later on h07: completed", frozenset[str]()) == (
        describe.status_line(run),
        registry.lost_on_hosts,
    )
    assert describe.doing(run).startswith("finished later on h07: completed · lost")


def test_a_run_whose_host_found_it_lost_is_over(engine: Engine) -> None:
    """A host's own report of a lost run is final: it is not checked again."""
    meta = make_finished(engine.project, remote(), reason=RunReason.LOST, written_by="host", final_text=None)
    write_place(engine.project.run_dir(meta.run_id), ON_H07)
    registry = Registry(engine.project, by=None)
    registry.look((meta.run_id,))
    assert not registry.lost_on_hosts


@pytest.mark.processes
def test_list_has_hosts_only_where_one_is_listed(engine: Engine) -> None:
    """The list of runs has a host column only if it has a run of another machine."""
    local = make_finished(engine.project)
    assert "h07" not in output(engine, "status").out
    before = output(engine, "status", local.short_id).out.splitlines()[0]
    run_id, lock = remote_run(engine, ON_H07, started=True)
    first, *_ = output(engine, "status").out.splitlines()
    assert ["● running", run_id[-6:], "one-off", "answer ok", "h07"] == re.split(r"\s{2,}", first)[:5]
    assert before == output(engine, "status", local.short_id).out.splitlines()[0]
    os.close(lock)


@pytest.mark.processes
def test_status_as_json(engine: Engine) -> None:
    """JSON has host and place of a run, empty for a local run."""
    run_id, lock = remote_run(engine, GONE)
    os.close(lock)
    local = make_finished(engine.project)
    there, here = (output(engine, "status", name, "--json").document["runs"][0] for name in (run_id, local.run_id))
    assert ("h07", "out_of_reach", True) == (there["host"], there["place"]["state"], there["unknown"])
    assert "h07 not seen since 14:02" in there["why"]
    assert ("", None, None) == (here["host"], here["place"], here["late"])


@pytest.mark.processes
def test_markdown_and_logs_name_the_host(engine: Engine) -> None:
    """A run's document and its logs on stderr name the host."""
    run_id, lock = remote_run(engine, ON_H07, started=True)
    document = "".join(run_markdown(seen(engine, run_id), engine.events(run_id), None))
    assert "- host: h07\n" in document
    assert "running · h07" in output(engine, "logs", run_id).err
    os.close(lock)


def test_runs_that_a_relay_vouches_for_are_not_proven_again(engine: Engine) -> None:
    """While a relay lives, only its runs with changes, or on unreachable hosts, are checked again."""
    placed, lock = remote_run(engine, ON_H07, started=True)
    gone, other_lock = remote_run(engine, GONE, started=True)
    waits, third_lock = remote_run(engine, Place(PlaceState.WAITS), permit=False)
    registry = Registry(engine.project, by=None)
    registry.look((placed, gone, waits), prove=True)
    assert registry.unwatched_ids == {placed, gone, waits}
    relay = files.open_lock(engine.project.relay_lock)
    fcntl.flock(relay, fcntl.LOCK_EX)
    assert registry.unwatched_ids == {gone}
    write_place(engine.project.run_dir(placed), GONE)
    write_place(engine.project.run_dir(waits), ON_H07)
    os.close(lock)
    assert registry.look(registry.grown_ids) == {placed, waits}
    run = registry.get(placed)
    assert run
    assert (True, "h07 not seen since 14:02") == (run.elsewhere, describe.activity(run))
    assert placed in registry.unwatched_ids
    for descriptor in (relay, other_lock, third_lock):
        os.close(descriptor)
