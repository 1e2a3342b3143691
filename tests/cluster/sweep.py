"""Faults at random moments, overlapping, while runs come and go: drawn from a seed, so that they can be repeated."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from .bed import HEAD, SCHEDULER, WORKER, Bed
from .checks import check
from .operator import Operator, Watch

HEALED_S = 90.0
"""Time until all is well after the last fault."""


class Fault(NamedTuple):
    name: str
    at: float
    """Seconds from the beginning."""
    seconds: float
    """Duration."""
    victim: str


class Plan(NamedTuple):
    seed: int
    launches: list[tuple[float, float]]
    """Time of the launch, in seconds from the beginning, and duration of the child."""
    faults: list[Fault]

    def __str__(self) -> str:
        faults = (f"{fault.at:.1f} s: {fault.name} {fault.victim} for {fault.seconds:.1f} s" for fault in self.faults)
        return "\n".join((f"seed {self.seed}, {len(self.launches)} runs", *faults))


def draw(seed: int, *, seconds: float, runs: int, hosts: list[str]) -> Plan:
    """Draw runs and faults; about one fault each two seconds; none of them ends a run."""
    chance = random.Random(seed)
    launches = sorted((chance.uniform(0, seconds * 0.6), chance.uniform(1, seconds / 3)) for _ in range(runs))
    faults: list[Fault] = []
    for _ in range(round(seconds / 2)):
        name, longest = chance.choice([
            ("kill relay", 2.0), ("kill worker", 0.0), ("kill scheduler", 4.0), ("stop worker", 10.0), ("cut", 12.0),
        ])  # fmt: skip
        longest = min(longest, seconds / 2)
        victim = chance.choice([HEAD, *hosts]) if name == "cut" else chance.choice(hosts) if "worker" in name else ""
        faults.append(Fault(name, chance.uniform(1, seconds), chance.uniform(longest / 10, longest), victim))
    return Plan(seed, launches, sorted(faults, key=lambda fault: fault.at))


class Sweep:
    """Plays a plan on a bed, and leaves that intact."""

    def __init__(self, bed: Bed, operator: Operator, watch: Watch) -> None:
        self._bed, self._operator, self._watch = bed, operator, watch

    def play(self, plan: Plan) -> list[str]:
        """Return the runs, all completed, with nothing lost, doubled or left."""
        runs: list[str] = []
        acts: list[tuple[float, Callable[[], object]]] = []
        for at, seconds in plan.launches:
            acts.append((at, lambda seconds=seconds: runs.extend(self._operator.launch(1, seconds=seconds))))
        for fault in plan.faults:
            begin, end = self._fault(fault)
            acts += [(fault.at, begin), (fault.at + fault.seconds, end)]
        began = time.monotonic()
        try:
            for at, act in sorted(acts, key=lambda pair: pair[0]):
                time.sleep(max(0.0, began + at - time.monotonic()))
                act()
        finally:
            self._heal()
        self._operator.look()
        self._operator.wait("all runs to complete", runs, "done", timeout=HEALED_S)
        check(self._operator, self._watch, runs)
        return runs

    def _fault(self, fault: Fault) -> tuple[Callable[[], object], Callable[[], object]]:
        """Return the functions that begin and end a fault."""
        bed, operator, victim = self._bed, self._operator, fault.victim
        match fault.name:
            case "kill relay":
                return operator.kill_relay, operator.look
            case "kill worker":
                return lambda: bed.send(signal.SIGKILL, WORKER, victim), _nothing
            case "kill scheduler":
                return lambda: bed.send(signal.SIGKILL, SCHEDULER, HEAD), self._need_scheduler
            case "stop worker":
                return lambda: bed.send(signal.SIGSTOP, WORKER, victim), lambda: bed.send(
                    signal.SIGCONT, WORKER, victim
                )
            case _:
                return lambda: bed.cut(victim), lambda: bed.heal(victim)

    def _need_scheduler(self) -> None:
        if not self._bed.find(SCHEDULER, HEAD):
            self._bed.start_scheduler()

    def _heal(self) -> None:
        for place in (HEAD, *self._bed.hosts):
            self._bed.heal(place)
        for host in self._bed.hosts:
            self._bed.send(signal.SIGCONT, WORKER, host)
        self._need_scheduler()


def _nothing() -> None:
    """End a fault that ends on its own."""


def new_seed() -> int:
    return int.from_bytes(os.urandom(4), "big")
