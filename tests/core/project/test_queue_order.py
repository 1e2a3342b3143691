"""The queue under the user's control: moving, pausing, resuming; tested with wrappers that really wait."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.paths import new_run_id
from subdeck.core.project.queue import HELD, ORDER, PROJECT, hold, moved, read_state, write_order
from subdeck.core.run import describe
from subdeck.core.run.describe import activity
from subdeck.core.run.model import RunStatus, WaitsFor
from subdeck.core.run.snapshot import Queued, RunSnapshot
from subdeck.core.wrapper._queue import Queue, Signals, SlotReservation, StopRequested, take_all

from tests.core.command_line import start as start_command, subdeck
from tests.core.delegation.delegating import Calling, call, parent_engine, task
from tests.factories import open_engine, request, start, wait_for_end
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands", "forked_wrappers")]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir, max_running=1)


def current(engine: Engine, run_id: str) -> RunSnapshot:
    (run,) = engine.snapshots((run_id,))
    return run


def in_queue(engine: Engine, count: int, project_dir: Path) -> tuple[str, list[str]]:
    """Start a run that holds the only slot until a file exists, and some that wait; return their ids in order."""
    first = start(engine, f"wait-for {project_dir}/gate", "answer ok").run_id
    waiting: list[str] = []
    for _ in range(count):
        waiting.append(start(engine, "answer ok").run_id)
        wait_until(lambda: waits(engine, waiting[-1]), "the run to wait")
    return first, waiting


def waits(engine: Engine, run_id: str) -> bool:
    state = current(engine, run_id).state
    return isinstance(state, Queued) and state.waits_for is not None


def ahead(engine: Engine, run_ids: list[str]) -> list[int]:
    states = {run.run_id: run.state for run in engine.snapshots(tuple(run_ids))}
    return [state.ahead for run_id in run_ids if isinstance(state := states[run_id], Queued)]


def started_in_order(engine: Engine, run_ids: list[str]) -> list[str]:
    for run_id in run_ids:
        wait_for_end(engine, run_id)
    return sorted(run_ids, key=lambda run_id: current(engine, run_id).started_at or "")


def test_run_that_was_moved_goes_first(engine: Engine, project_dir: Path) -> None:
    """A run moved to the front goes first, and every reader counts in the new order."""
    _, (one, two, three) = in_queue(engine, 3, project_dir)
    assert [0, 1, 2] == ahead(engine, [one, two, three])
    assert 1 == engine.move_in_queue(three, -1)
    assert 0 == engine.move_in_queue(three, -1)
    assert 0 == engine.move_in_queue(three, -1)
    assert [1, 2, 0] == ahead(engine, [one, two, three])
    assert 1 == engine.move_in_queue(three, 1)
    assert 0 == engine.move_in_queue(three, -1)
    (project_dir / "gate").touch()
    assert [three, one, two] == started_in_order(engine, [one, two, three])
    assert not [name for name in os.listdir(f"{engine.project.slots}/project") if name.startswith("waits")]


def test_run_that_was_stopped_keeps_nobody_back(engine: Engine, project_dir: Path) -> None:
    """A run that left the front of the queue is not waited for, not even if its wrapper was killed."""
    _, (one, two, three) = in_queue(engine, 3, project_dir)
    engine.move_in_queue(three, -1)
    engine.move_in_queue(three, -1)
    engine.move_in_queue(two, -1)
    engine.stop((three,))
    wait_for_end(engine, three)
    from subdeck.core.run import artifacts

    facts = artifacts.read_runner(engine.project.run_dir(two))
    assert facts is not None
    os.kill(facts.pid, 9)
    (project_dir / "gate").touch()
    assert RunStatus.COMPLETED == wait_for_end(engine, one).status


def test_held_queue_starts_nothing_until_it_is_released(engine: Engine, project_dir: Path) -> None:
    """In a paused queue running runs continue; waiting and new runs wait until it is resumed, and show that."""
    first, (one, two) = in_queue(engine, 2, project_dir)
    engine.hold_queue(True)
    assert engine.is_queue_held()
    (project_dir / "gate").touch()
    wait_for_end(engine, first)
    late = start(engine, "answer ok").run_id
    wait_until(lambda: waits(engine, late), "the new run to wait")
    run = current(engine, one)
    assert ("queue paused, next", RunStatus.QUEUED) == (describe.doing(run), run.status)
    engine.hold_queue(False)
    assert not engine.is_queue_held()
    assert [one, two, late] == started_in_order(engine, [one, two, late])


def test_held_queue_holds_runs_that_need_no_slot(project_dir: Path) -> None:
    """Without `max_running` every new run waits in a paused queue, shows how to resume, and starts on resume."""
    engine = open_engine(project_dir)
    engine.hold_queue(True)
    background = subdeck("bg", "answer ok", "--no-preset", cwd=project_dir)
    assert 0 == background.code and describe.QUEUE_HELD in background.err
    foreground = start_command("run", "answer ok", "--no-preset", cwd=project_dir)
    try:
        wait_until(lambda: len(engine.snapshots()) == 2, "both runs to exist")
        runs = engine.snapshots()
        for run in runs:
            wait_until(lambda run=run: waits(engine, run.run_id), "it to wait")
        states = [run.state for run in engine.snapshots()]
        assert [Queued(WaitsFor.HOLD, held=True)] * 2 == states
        assert {(describe.QUEUE_HELD, "queue paused, next")} == {(activity(run), describe.doing(run)) for run in runs}
        assert describe.QUEUE_HELD in subdeck("status", cwd=project_dir).out
        assert describe.QUEUE_HELD[4:] in subdeck("status", runs[0].run_id, cwd=project_dir).out
        assert describe.QUEUE_HELD in subdeck("wait", runs[0].run_id, "--timeout", "0.1", cwd=project_dir).err
        with pytest.raises(SubdeckError, match="starts as soon as the queue is resumed"):
            engine.move_in_queue(runs[0].run_id, -1)
        engine.hold_queue(False)
        assert {RunStatus.COMPLETED} == {wait_for_end(engine, run.run_id).status for run in runs}
        _, err = foreground.communicate(timeout=30)
        assert 1 == err.decode().count(describe.QUEUE_HELD)
    finally:
        foreground.kill()
        foreground.communicate()


def test_parents_learn_that_the_queue_is_held(project_dir: Path) -> None:
    """A parent's runs wait in a paused queue, and it gets the reason in progress, handle and status."""
    engine = parent_engine(project_dir)
    engine.hold_queue(True)
    calling = Calling(engine, "subagent", task("answer ok"))
    try:
        wait_until(lambda: any(describe.QUEUE_HELD in told.text for told in calling.told), "the progress to say so")
        background = call(engine, "background_agent", task("answer ok"))
        assert 1 == background.text.count(describe.QUEUE_HELD)
        status = call(engine, "background_agent_status", {"runId": background.structured["runId"]})
        assert describe.QUEUE_HELD in status.text
    finally:
        engine.hold_queue(False)
    assert not calling.answer().is_error
    assert RunStatus.COMPLETED == wait_for_end(engine, background.structured["runId"]).status


def test_held_run_can_be_stopped(project_dir: Path) -> None:
    """A run in a paused queue can be stopped, and the runs behind it still wait."""
    engine = open_engine(project_dir)
    engine.hold_queue(True)
    one, two = (start(engine, "answer ok").run_id for _ in range(2))
    engine.stop((one,))
    assert RunStatus.ABORTED == wait_for_end(engine, one).status
    assert describe.is_held(current(engine, two))
    engine.hold_queue(False)
    assert RunStatus.COMPLETED == wait_for_end(engine, two).status


@pytest.mark.parametrize("content", [b"", b"0" * 32 + b"\n", None], ids=["empty", "unsigned", "of another place"])
def test_a_checkout_holds_no_queue(project_dir: Path, tmp_path: Path, content: bytes | None) -> None:
    """A pause and an order count only if this user's subdeck made them for this project."""
    run_id, other = new_run_id(), str(tmp_path / "other")
    hold(other, True)
    write_order(other, (run_id,))
    assert (True, (run_id,)) == (read_state(other).held, read_state(other).order)
    engine = open_engine(project_dir)
    for name in (HELD, ORDER):
        file = Path(engine.project.slots, PROJECT, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(Path(other, PROJECT, name).read_bytes() if content is None else content)
    assert (False, ()) == (engine.is_queue_held(), read_state(engine.project.slots).order)
    assert RunStatus.COMPLETED == wait_for_end(engine, start(engine, "answer ok").run_id).status


def test_hold_is_made_in_place_of_what_a_checkout_brought(project_dir: Path) -> None:
    """A checkout's file prevents neither pausing nor resuming the queue."""
    engine = open_engine(project_dir)
    file = Path(engine.project.slots, PROJECT, HELD)
    file.parent.mkdir(parents=True)
    file.touch()
    engine.hold_queue(True)
    assert engine.is_queue_held()
    engine.hold_queue(False)
    assert not engine.is_queue_held()


def test_a_signal_that_came_before_the_wait_ends_it_once() -> None:
    """After a signal or an error ended a wait, another signal interrupts nothing."""
    for caught, fault in (([15], StopRequested), ([], OSError)):
        signals = Signals("/nowhere")
        signals.caught += caught
        with pytest.raises(fault):
            take_all((SlotReservation("/dev/null/slots", 1, new_run_id()),), Queue(lambda kind: None), signals)
        signals.handle(15, None)


def test_run_that_waits_says_when_the_queue_is_held(engine: Engine, project_dir: Path) -> None:
    """A wait for a queued run shows that the queue was paused later."""
    first, (one,) = in_queue(engine, 1, project_dir)
    waiter = start_command("wait", one, cwd=project_dir)
    try:
        engine.hold_queue(True)
        assert waiter.stderr and describe.QUEUE_HELD in waiter.stderr.readline().decode()
    finally:
        waiter.kill()
        waiter.communicate()
    engine.hold_queue(False)
    (project_dir / "gate").touch()
    assert RunStatus.COMPLETED == wait_for_end(engine, one).status
    wait_for_end(engine, first)


def test_queue_on_the_command_line(engine: Engine, project_dir: Path) -> None:
    """From a shell the queue can be listed in order, changed, paused and resumed."""
    first, (one, two) = in_queue(engine, 2, project_dir)
    assert [one[-6:], two[-6:]] == [line.split()[0] for line in subdeck("queue", cwd=project_dir).out.splitlines()]
    held = subdeck("queue", two[-6:], "--up", "--hold", "--json", cwd=project_dir).document
    assert (True, [(two, 0), (one, 1)]) == (held["held"], [(run["runId"], run["ahead"]) for run in held["runs"]])
    assert "subdeck queue --release" in subdeck("queue", cwd=project_dir).out
    assert 2 == subdeck("queue", "--up", cwd=project_dir).code == subdeck("queue", one, cwd=project_dir).code
    assert not subdeck("queue", "--release", "--json", cwd=project_dir).document["held"]
    (project_dir / "gate").touch()
    assert [two, one] == started_in_order(engine, [one, two])
    wait_for_end(engine, first)
    assert "The queue is empty.\n" == subdeck("queue", cwd=project_dir).out


def test_run_that_does_not_wait_cannot_be_moved(engine: Engine, project_dir: Path) -> None:
    """A running run has no position in the queue."""
    first, _ = in_queue(engine, 0, project_dir)
    with pytest.raises(SubdeckError, match="is not waiting in the queue"):
        engine.move_in_queue(first, -1)
    (project_dir / "gate").touch()
    wait_for_end(engine, first)


def test_group_keeps_to_its_own_queue(project_dir: Path) -> None:
    """If each group has its own slots, a run is moved only within its group."""
    engine = open_engine(project_dir, max_parallel=1)
    scripts = [f"wait-for {project_dir}/gate", "answer ok"]
    run_ids = [run.run_id for run in engine.launch([request(*scripts)] * 3, background=True)]

    def waiting() -> list[str] | None:
        found = [run_id for run_id in run_ids if waits(engine, run_id)]
        return found if len(found) == 2 else None  # the first one has the slot

    one, two = wait_until(waiting, "two of them to wait")
    assert 0 == engine.move_in_queue(two, -1)
    (project_dir / "gate").touch()
    assert [two, one] == started_in_order(engine, [one, two])


def test_moving_in_one_queue_leaves_the_others() -> None:
    """A moved run passes only its neighbour in the same queue."""
    waiting = [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")]
    assert ["c", "a", "b", "d"] == moved(waiting, "c", -1)
    assert ["b", "c", "a", "d"] == moved(waiting, "a", 1)
    assert ["a", "b", "c", "d"] == moved(waiting, "b", -1)
    assert ["a", "b", "c", "d"] == moved(waiting, "d", 1)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"../..\n", b"x" * 100_000])
def test_order_that_makes_no_sense_is_none(project_dir: Path, content: bytes) -> None:
    """An invalid order in a checkout has no effect."""
    place = project_dir / "slots" / "project"
    place.mkdir(parents=True)
    (place / "order").write_bytes(content)
    assert () == tuple(read_state(str(place.parent)).order)


def test_who_follows_the_project_sees_it(engine: Engine, project_dir: Path) -> None:
    """An open app shows a move, and a pause of the queue, by another program."""
    first, (one, two) = in_queue(engine, 2, project_dir)
    other = Engine.open(str(project_dir), session="other")
    stop = threading.Event()
    states: dict[str, Queued] = {}

    def follow() -> None:
        for update in engine.updates(stop):
            states.update({run.run_id: run.state for run in update.runs if isinstance(run.state, Queued)})

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        wait_until(lambda: len(states) == 2, "both to be known")
        other.move_in_queue(two, -1)
        wait_until(lambda: (1, 0) == (states[one].ahead, states[two].ahead), "the move")
        other.hold_queue(True)
        wait_until(lambda: states[one].held and states[two].held, "the hold")
        other.hold_queue(False)
        wait_until(lambda: not states[one].held, "the release")
    finally:
        stop.set()
        follower.join()
        (project_dir / "gate").touch()
    for run_id in (first, one, two):
        wait_for_end(engine, run_id)
