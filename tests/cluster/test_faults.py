"""Truth under faults: after any fault, each child is started once, and no state is guessed."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run import artifacts
from subdeck.core.run.enumerations import RunReason, RunStatus
from subdeck.core.run.model import RunResult

from tests.killing import IS_WHOLE
from tests.waiting import wait_until

from .bed import HEAD, SCHEDULER, WORKER, Bed
from .checks import check
from .operator import REACH_S, UNKNOWN, Operator, Watch, word_of

WRAPPER = "subdeck.core.wrapper"
SLOTS = 8
"""Of both hosts."""

long = pytest.mark.skipif(not IS_WHOLE, reason="a minute: only with make soak, or SUBDECK_EVERY_STEP=1")


def running(operator: Operator, count: int, **more: float) -> list[str]:
    """Launch so many runs, and wait until all children have begun."""
    runs = operator.launch(count, **more)
    operator.wait("all runs to run", runs, "running")
    assert all(host_of(operator, run) for run in runs)
    return runs


def on_both(operator: Operator, count: int) -> tuple[list[str], list[str]]:
    """Launch so many runs on each host, and wait until all children have begun; return those of h1 and those of h2."""
    first, second = (operator.launch(count, host=host) for host in ("h1", "h2"))
    operator.wait("all runs to run", [*first, *second], "running")
    assert {"h1", "h2"} == {host_of(operator, run) for run in (*first, *second)}
    return first, second


def host_of(operator: Operator, run: str) -> str:
    return wait_until(lambda: next(iter(operator.starts(run)), ""), "the child to say where it is")


def result_of(operator: Operator, run: str) -> RunResult:
    result = artifacts.read_result(str(operator.run_dir(run)))
    assert result
    return result


def to_the_end(operator: Operator, watch: Watch, runs: list[str], *, timeout: float = 60) -> None:
    """Let the children finish; all is well."""
    operator.finish(runs)
    operator.wait("all runs to end", runs, "done", timeout=timeout)
    check(operator, watch, runs)


def test_from_launch_to_answer(operator: Operator, watch: Watch) -> None:
    """Runs are placed on hosts and seen running; their answers and records come back complete, and only once. Those
    launched by a command continue without it.
    """
    done = operator.cli("bg", "--no-preset", "--runner", "hosts", "--json", operator.task(1, 60))
    assert 0 == done.code, done.err
    runs = sorted(watch.wait_for(1)) + operator.launch(3)
    operator.wait("all runs to run", runs, "running")
    to_the_end(operator, watch, runs)
    assert all("said" in (result_of(operator, run).final_text or "") for run in runs)
    assert {word for run in runs for word in watch.words(run)} <= {"queued", "running", "done"}


def test_the_relay_is_killed(operator: Operator, watch: Watch) -> None:
    """The state of a run whose relay was killed is unknown; the next command starts another, which confirms it at
    once.
    """
    runs = running(operator, 4)
    operator.kill_relay()
    operator.wait("nobody to vouch for them", runs, UNKNOWN, timeout=2)
    operator.look()
    operator.wait("all runs to be vouched for", runs, "running", timeout=10)
    to_the_end(operator, watch, runs)


def test_later_relays_take_no_more_slots(operator: Operator, watch: Watch) -> None:
    """A run occupies one slot, no matter how many relays have served it."""
    runs = running(operator, SLOTS // 2)
    for _ in range(3):
        operator.kill_relay()
        operator.look()
        operator.wait("all runs to be vouched for", runs, "running", timeout=10)
    runs += operator.launch(SLOTS // 2)
    operator.wait("the other slots to be used", runs, "running", timeout=15)
    to_the_end(operator, watch, runs)


def test_both_workers_are_killed(bed: Bed, operator: Operator, watch: Watch) -> None:
    """Runs continue without the worker of their host; the next one takes them, and starts none beyond its slots."""
    runs = running(operator, 4)
    waiting = operator.launch(SLOTS)
    for host in bed.hosts:
        assert bed.send(signal.SIGKILL, WORKER, host)
    wait_until(
        lambda: [word_of(operator.now(run)) for run in waiting].count("running") == SLOTS - 4,
        "as many to run as there are slots",
        45,
    )
    operator.wait("all runs to be vouched for", runs, "running")
    started = Counter(next(iter(operator.starts(run)), "") for run in (*runs, *waiting))
    assert all(started[host] <= bed.slots for host in bed.hosts)  # none has ended yet
    to_the_end(operator, watch, runs + waiting)


def test_the_scheduler_is_killed(bed: Bed, operator: Operator, watch: Watch) -> None:
    """Without a scheduler runs continue and none begins; with another one waiting runs get their slots."""
    runs = running(operator, SLOTS)
    waiting = operator.launch(6)
    assert bed.send(signal.SIGKILL, SCHEDULER, HEAD)
    wait_until(lambda: "no answer from" in operator.hosts_file, "the relay to miss it")
    assert UNKNOWN not in {watch.words(run)[-1] for run in waiting}
    bed.start_scheduler()
    operator.wait("all runs to be vouched for", runs, "running", timeout=60)
    to_the_end(operator, watch, runs + waiting, timeout=90)


def test_a_host_is_cut_off(bed: Bed, operator: Operator, watch: Watch) -> None:
    """A run on an unreachable host is unknown, and those of other hosts are not. Its result comes when its host is
    back; a stop waits for that. An abandoned run's child is stopped then, and its result there is kept.
    """
    cut_off, others = on_both(operator, 4)
    ending, stopping, (given_up,) = cut_off[:2], cut_off[2:3], cut_off[3:]
    bed.cut("h1")
    try:
        operator.wait("those of h1 to be out of reach", cut_off, UNKNOWN, timeout=4 * REACH_S)
        done = operator.cli("stop", *stopping)
        assert 0 == done.code and "will be stopped when h1 is back" in done.out + done.err, done
        assert "h1 not seen since" in operator.cli("status", given_up).out
        done = operator.cli("hosts", "give-up", given_up)
        assert 0 == done.code, done.err
        operator.wait("it to be given up", [given_up], "lost", timeout=5)
        result = result_of(operator, given_up)
        assert "operator" == result.written_by and "abandoned" in (result.error_message or "")
        operator.finish([*ending, *others])
        operator.wait("the others to end", others, "done")
        wait_until(lambda: 2 == len(bed.find("counted.py", "h1")), "the children there to end that shall")
        assert {UNKNOWN} == {watch.words(run)[-1] for run in (*ending, *stopping)}
    finally:
        bed.heal("h1")
    operator.wait("their ends to come", ending, "done", timeout=60)
    operator.wait("the stop to arrive", stopping, "stopped", timeout=60)
    wait_until(lambda: not bed.find("counted.py", "h1"), "the child of what was given up to be stopped", 60)
    wait_until((operator.run_dir(given_up) / paths.LATE_RESULT).exists, "what its host told later")
    assert ["h1"] == operator.starts(given_up)
    assert RunReason.LOST == result_of(operator, given_up).reason
    check(operator, watch, [*ending, *stopping, *others])
    assert UNKNOWN not in {word for run in others for word in watch.words(run)}


def test_stopped_before_and_after_it_was_placed(operator: Operator, watch: Watch) -> None:
    """A waiting run is never started after a stop; one that runs there ends."""
    runs = running(operator, SLOTS)
    waiting = operator.launch(2)
    operator.wait("them to wait", waiting, "queued")
    done = operator.cli("stop", *waiting, *runs[:2])
    assert 0 == done.code, done.err
    operator.wait("all four to be stopped", [*waiting, *runs[:2]], "stopped", timeout=20)
    operator.finish(runs)
    operator.wait("the others to end", runs[2:], "done")
    check(operator, watch, runs)
    check(operator, watch, waiting, starts=0, delivered=False)


@pytest.mark.parametrize("operator", [{"lease": {"agent": "60s", "operator": "4s"}}], indirect=True)
def test_cut_off_for_longer_than_the_lease(bed: Bed, operator: Operator, watch: Watch) -> None:
    """A child without contact for its lease is ended on its host, in time; those of other hosts complete."""
    cut_off, others = on_both(operator, 2)
    runs = cut_off + others
    bed.cut("h1")
    try:
        wait_until(lambda: not bed.find("counted.py", "h1"), "the children there to be ended", 30)
        assert {UNKNOWN} == {watch.words(run)[-1] for run in cut_off}
    finally:
        bed.heal("h1")
    operator.wait("to hear how they ended", cut_off, "lease", timeout=60)
    operator.finish(runs)
    operator.wait("the others to end", others, "done")
    check(operator, watch, runs)
    assert {RunStatus.ABORTED} == {result_of(operator, run).status for run in cut_off}


def test_a_host_dies_and_boots(bed: Bed, operator: Operator, watch: Watch) -> None:
    """A run on a host that died is unknown until that host, after its boot, reports it as lost."""
    others, there = on_both(operator, 2)
    runs = there + others
    bed.power_off("h2")
    operator.wait("its runs to be unknown", there, UNKNOWN, timeout=4 * REACH_S)
    bed.boot("h2")
    operator.wait("the host to say that they were lost", there, "lost", timeout=60)
    operator.finish(runs)
    operator.wait("the others to end", others, "done")
    check(operator, watch, runs)


def test_the_relay_is_killed_as_it_gives_permits(operator: Operator, watch: Watch) -> None:
    """A relay that dies between a permit and the start has started nothing twice, and no permit is left behind."""
    runs = operator.launch(6)
    for _ in range(4):
        had = len(_permits(operator))
        wait_until(lambda had=had: len(_permits(operator)) > had or had == len(runs), "a permit", 30)
        operator.kill_relay()
        operator.look()
    operator.wait("all runs to run", runs, "running")
    to_the_end(operator, watch, runs)


def _permits(operator: Operator) -> list[Path]:
    return list(Path(operator.engine.project.runs).glob(f"2*/{paths.PERMIT}"))


def test_a_wrapper_is_killed(bed: Bed, operator: Operator, watch: Watch) -> None:
    """The host itself finishes a run whose wrapper was killed there, and ends its child."""
    (run,) = running(operator, 1)
    host = host_of(operator, run)
    assert bed.send(signal.SIGKILL, WRAPPER, host)
    operator.wait("its host to say so", [run], "lost", timeout=15)
    check(operator, watch, [run])


@long
@pytest.mark.timeout(300)
def test_a_worker_stands_still(bed: Bed, operator: Operator, watch: Watch) -> None:
    """A worker stopped for longer than the scheduler keeps it delivers the results from that time."""
    there, others = on_both(operator, 2)
    runs = there + others
    stopped = bed.send(signal.SIGSTOP, WORKER, "h1")
    try:
        operator.wait("its runs to be unknown", there, UNKNOWN, timeout=4 * REACH_S)
        operator.finish(runs)
        operator.wait("the others to end", others, "done")
        time.sleep(35 - REACH_S)  # longer than worker-ttl
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    operator.wait("their ends to come", there, "done", timeout=60)
    check(operator, watch, runs)


@long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["h1", HEAD])
def test_cut_off_until_the_scheduler_drops_it(bed: Bed, operator: Operator, watch: Watch, place: str) -> None:
    """A cut of half a minute, of one host or of all from the scheduler, costs nothing but knowledge."""
    runs = running(operator, SLOTS)
    waiting = operator.launch(2)
    bed.cut(place)
    try:
        time.sleep(15)
        operator.finish(runs)
        time.sleep(15)
    finally:
        bed.heal(place)
    operator.wait("their ends to come", runs, "done", timeout=60)
    to_the_end(operator, watch, runs + waiting, timeout=90)
