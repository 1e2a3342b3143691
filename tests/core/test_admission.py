"""Which of the runs that wait for a host get a slot now, and what the others wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subdeck.core.hosts.relay.admission import NO_HOST, Asking, Placed, Room, Ruling, admit
from subdeck.core.hosts.relay.desk import Desk
from subdeck.core.hosts.relay.roster import Roster
from subdeck.core.paths import Project
from subdeck.core.project.queue import hold


def asking(count: int, **others: Any) -> list[Asking]:
    return [Asking(f"r{number}", **others) for number in range(count)]


def room(name: str, slots: int, **others: Any) -> Room:
    return Room(f"test {name}", name, slots, **others)


def wished(rulings: dict[str, Ruling]) -> list[str]:
    return [run for run, ruling in rulings.items() if ruling.key]


def test_the_oldest_get_the_free_slots() -> None:
    """No more slots are asked for than are free."""
    rulings = admit(asking(4), [Placed("p", "test h1")], [room("h1", 2), room("h2", 2, others=1)])
    assert ["r0", "r1"] == wished(rulings)
    assert "" == rulings["r3"].why


def test_a_run_that_is_out_of_reach_takes_no_free_slot() -> None:
    """Its host has none that could be given away."""
    assert ["r0"] == wished(admit(asking(2), [Placed("p", "")], [room("h1", 1)]))


def test_a_group_runs_no_more_at_a_time() -> None:
    """Runs with a permit and those that are about to get one count, wherever they are."""
    waiting = asking(4, group="g", max_parallel=2)
    rulings = admit(waiting, [Placed("p", "", "g")], [room("h1", 9)])
    assert ["r0"] == wished(rulings)
    assert ("limit of 2 parallel runs in its group reached", False) == (rulings["r2"].why, rulings["r2"].passed_over)


def test_the_caps_of_project_and_hosts_hold() -> None:
    """`max_running` of the project, and that of the hosts."""
    rooms, placed = [room("h1", 9)], [Placed("p", "test h1")]
    rulings = admit(asking(4, max_running=2), placed, rooms)
    assert (["r0"], "limit of 2 parallel runs in the project reached") == (wished(rulings), rulings["r1"].why)
    rulings = admit(asking(4), placed, rooms, max_running=3)
    assert (["r0", "r1"], "limit of 3 parallel runs on hosts reached") == (wished(rulings), rulings["r2"].why)


def test_a_held_queue_starts_nothing() -> None:
    """While the operator holds the queue no run gets a slot."""
    rulings = admit(asking(2), [], [room("h1", 9)], held=True)
    assert [] == wished(rulings)


def test_a_run_goes_to_the_host_that_it_names() -> None:
    """It waits for that one, and others do not wait for it."""
    waiting = [Asking("r0", host="h1"), Asking("r1", host="h7"), Asking("r2"), Asking("r3", host="nope")]
    rulings = admit(waiting, [Placed("p", "test h1")], [room("h1", 1), room("h2", 1)], {"h1": "", "h7": ""})
    assert "test h2" == rulings["r2"].key
    assert ("", "h7 does not answer") == (rulings["r0"].why, rulings["r1"].why)
    assert "unknown host nope (hosts: h1, h2, h7)" == rulings["r3"].why
    assert "it is odd" == admit([Asking("r", host="h7")], [], [room("h1", 1)], {"h7": "it is odd"})["r"].why


def test_what_no_host_has_keeps_only_its_run_waiting() -> None:
    """A need that nobody can meet is said, and stands in nobody's way."""
    rooms = [room("h1", 2, labels={"gpu": 1}), room("h2", 2, labels={"mem": 8})]
    waiting = [
        Asking("r0", needs={"tpu": 1}),
        Asking("r1", needs={"mem": 16}),
        Asking("r2", needs={"gpu": 1, "mem": 8}),
        Asking("r3", host="h2", needs={"gpu": 1}),
        Asking("r4"),
    ]
    rulings = admit(waiting, [], rooms)
    assert ["no host has tpu", "no host has 16 mem", "no host has gpu=1, mem=8", "h2 does not have gpu"] == [
        rulings[f"r{number}"].why for number in range(4)
    ]
    assert (["r4"], [True, False]) == (wished(rulings), [rulings[run].passed_over for run in ("r3", "r4")])


def test_an_older_run_gets_a_label_first() -> None:
    """One that needs much is not starved by later ones that need little."""
    rooms, placed = [room("h1", 9, labels={"gpu": 2})], [Placed("p", "test h1", needs={"gpu": 1})]
    waiting = [Asking("r0", needs={"gpu": 2}), Asking("r1", needs={"gpu": 1}), Asking("r2")]
    assert ["r2"] == wished(admit(waiting, placed, rooms))
    assert ["r0", "r2"] == wished(admit(waiting, [], rooms))


def test_a_slot_stays_meant_for_its_run() -> None:
    """As long as nothing changes nobody's slot is another one: no ticket is taken back for nothing."""
    rooms = [room("h1", 2), room("h2", 2)]
    first = admit(asking(3), [], rooms)
    again = admit(asking(3)[1:], [], [room("h2", 2), room("h1", 2)], before=first)
    assert [first["r1"].key, first["r2"].key] == [again["r1"].key, again["r2"].key]


def test_without_hosts_nothing_is_asked_for() -> None:
    """Who waits says that no host answers, or why, where that is known."""
    assert {Ruling(why=NO_HOST)} == set(admit(asking(2), [], []).values())
    why = "me@h1: Permission denied (publickey)."
    assert {why} == {ruling.why for ruling in admit(asking(2), [], [], why_none=why).values()}


def test_a_slot_that_comes_after_the_hold_is_not_taken(project_dir: Path) -> None:
    """A slot asked for before the operator held the queue starts nothing until the release."""
    project = Project(str(project_dir))
    desk = Desk(project, Roster(project))
    desk._rulings = admit(asking(1), [], [room("h1", 1)])
    (run_id,) = desk._rulings
    assert desk.may_start(run_id)
    hold(project.slots, True)
    assert not desk.may_start(run_id)
    hold(project.slots, False)
    assert desk.may_start(run_id)
