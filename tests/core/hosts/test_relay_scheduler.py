"""Which runs that wait for a host get a slot now, and why the others wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subdeck.core.hosts.relay.scheduler import NO_HOST, Decision, PlacedRun, Scheduler, WaitingRun, schedule
from subdeck.core.hosts.relay.slots import Capacity, Hosts
from subdeck.core.paths import Project
from subdeck.core.project.queue import hold


def waiting_runs(count: int, **others: Any) -> list[WaitingRun]:
    return [WaitingRun(f"r{number}", **others) for number in range(count)]


def capacity(name: str, slots: int, **others: Any) -> Capacity:
    return Capacity(f"test {name}", name, slots, **others)


def assigned(decisions: dict[str, Decision]) -> list[str]:
    return [run for run, decision in decisions.items() if decision.key]


def test_the_oldest_get_the_free_slots() -> None:
    """No more slots are requested than are free."""
    decisions = schedule(waiting_runs(4), [PlacedRun("p", "test h1")], [capacity("h1", 2), capacity("h2", 2, others=1)])
    assert ["r0", "r1"] == assigned(decisions)
    assert "" == decisions["r3"].why


def test_a_run_that_is_out_of_reach_takes_no_free_slot() -> None:
    """An unreachable run uses no free slot of a reachable host."""
    assert ["r0"] == assigned(schedule(waiting_runs(2), [PlacedRun("p", "")], [capacity("h1", 1)]))


def test_a_group_runs_no_more_at_a_time() -> None:
    """Runs with a permit and runs about to get one count towards their group's limit, on any host."""
    waiting = waiting_runs(4, group="g", max_parallel=2)
    decisions = schedule(waiting, [PlacedRun("p", "", "g")], [capacity("h1", 9)])
    assert ["r0"] == assigned(decisions)
    assert ("limit of 2 parallel runs in its group reached", False) == (
        decisions["r2"].why,
        decisions["r2"].passed_over,
    )


def test_the_caps_of_project_and_hosts_hold() -> None:
    """`max_running` of the project and of the hosts limit the runs."""
    capacities, placed = [capacity("h1", 9)], [PlacedRun("p", "test h1")]
    decisions = schedule(waiting_runs(4, max_running=2), placed, capacities)
    assert (["r0"], "limit of 2 parallel runs in the project reached") == (assigned(decisions), decisions["r1"].why)
    decisions = schedule(waiting_runs(4), placed, capacities, max_running=3)
    assert (["r0", "r1"], "limit of 3 parallel runs on hosts reached") == (assigned(decisions), decisions["r2"].why)


def test_a_held_queue_starts_nothing() -> None:
    """While the user has paused the queue no run gets a slot."""
    decisions = schedule(waiting_runs(2), [], [capacity("h1", 9)], held=True)
    assert [] == assigned(decisions)


def test_a_run_goes_to_the_host_that_it_names() -> None:
    """A run waits for the host it names, and others do not wait for that run."""
    waiting = [
        WaitingRun("r0", host="h1"),
        WaitingRun("r1", host="h7"),
        WaitingRun("r2"),
        WaitingRun("r3", host="nope"),
    ]
    decisions = schedule(
        waiting, [PlacedRun("p", "test h1")], [capacity("h1", 1), capacity("h2", 1)], {"h1": "", "h7": ""}
    )
    assert "test h2" == decisions["r2"].key
    assert ("", "h7 does not answer") == (decisions["r0"].why, decisions["r1"].why)
    assert "unknown host nope (hosts: h1, h2, h7)" == decisions["r3"].why
    assert "it is odd" == schedule([WaitingRun("r", host="h7")], [], [capacity("h1", 1)], {"h7": "it is odd"})["r"].why


def test_what_no_host_has_keeps_only_its_run_waiting() -> None:
    """A resource that no host has is reported, and blocks only its own run."""
    capacities = [capacity("h1", 2, labels={"gpu": 1}), capacity("h2", 2, labels={"mem": 8})]
    waiting = [
        WaitingRun("r0", needs={"tpu": 1}),
        WaitingRun("r1", needs={"mem": 16}),
        WaitingRun("r2", needs={"gpu": 1, "mem": 8}),
        WaitingRun("r3", host="h2", needs={"gpu": 1}),
        WaitingRun("r4"),
    ]
    decisions = schedule(waiting, [], capacities)
    assert ["no host has tpu", "no host has 16 mem", "no host has gpu=1, mem=8", "h2 does not have gpu"] == [
        decisions[f"r{number}"].why for number in range(4)
    ]
    assert (["r4"], [True, False]) == (assigned(decisions), [decisions[run].passed_over for run in ("r3", "r4")])


def test_an_older_run_gets_a_label_first() -> None:
    """A run that requires much is not starved by later ones that require little."""
    capacities, placed = [capacity("h1", 9, labels={"gpu": 2})], [PlacedRun("p", "test h1", needs={"gpu": 1})]
    waiting = [WaitingRun("r0", needs={"gpu": 2}), WaitingRun("r1", needs={"gpu": 1}), WaitingRun("r2")]
    assert ["r2"] == assigned(schedule(waiting, placed, capacities))
    assert ["r0", "r2"] == assigned(schedule(waiting, [], capacities))


def test_a_slot_stays_meant_for_its_run() -> None:
    """If nothing changes, a run keeps its slot: no ticket is withdrawn for nothing."""
    capacities = [capacity("h1", 2), capacity("h2", 2)]
    first = schedule(waiting_runs(3), [], capacities)
    again = schedule(waiting_runs(3)[1:], [], [capacity("h2", 2), capacity("h1", 2)], before=first)
    assert [first["r1"].key, first["r2"].key] == [again["r1"].key, again["r2"].key]


def test_without_hosts_nothing_is_asked_for() -> None:
    """Without hosts a waiting run shows that no host answers, or the known reason."""
    assert {Decision(why=NO_HOST)} == set(schedule(waiting_runs(2), [], []).values())
    why = "me@h1: Permission denied (publickey)."
    assert {why} == {decision.why for decision in schedule(waiting_runs(2), [], [], why_none=why).values()}


def test_a_slot_that_comes_after_the_hold_is_not_taken(project_dir: Path) -> None:
    """A slot requested before the user paused the queue starts nothing until the queue is resumed."""
    project = Project(str(project_dir))
    scheduler = Scheduler(project, Hosts(project))
    scheduler._decisions = schedule(waiting_runs(1), [], [capacity("h1", 1)])
    (run_id,) = scheduler._decisions
    assert scheduler.may_start(run_id)
    hold(project.slots, True)
    assert not scheduler.may_start(run_id)
    hold(project.slots, False)
    assert scheduler.may_start(run_id)
