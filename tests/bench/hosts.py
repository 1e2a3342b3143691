"""Runs on two hosts in namespaces of this machine: a line's latency, the cost of placing, and lost lines."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from subdeck.core.engine import Engine
from subdeck.core.paths import EVENTS, RESULT
from subdeck.core.spec.request import RunRequest

from tests.cluster.bed import Bed, why_not
from tests.cluster.checks import lines, not_once, spooled
from tests.cluster.operator import AGENT, Operator
from tests.cluster.sweep import Sweep, draw
from tests.waiting import wait_until

from .figures import Figure, not_measured, percentile, usually

LOOK_S = 0.002
TALKING, PER_SECOND, SECONDS = usually((4, 20, 10.0), smoke=(2, 20, 1.5))
NO_OP, SLOTS = usually((200, 16), smoke=(6, 3))
SEEDS = usually((1, 2), smoke=(30,))
SWEEP_S, SWEEP_RUNS = usually((40.0, 20), smoke=(2.0, 2))
"""Seed 30 kills a worker."""


def measure() -> Iterator[Figure]:
    if why := why_not():
        yield not_measured("runs on hosts", why)
        return
    with bed(slots=SLOTS) as there:
        yield _late(there)
        yield from _many(there)
    with bed(slots=4) as there:
        yield _faults(there)


@contextmanager
def bed(*, slots: int) -> Iterator[Bed]:
    """Make two hosts, and wait until both are working."""
    base = Path(tempfile.mkdtemp(prefix="sdb-", dir="/tmp"))
    try:
        with Bed(base, slots=slots, **AGENT) as made:
            with Operator(made, "first").entered() as operator:
                runs = [*operator.launch(1, host="h1", seconds=0), *operator.launch(1, host="h2", seconds=0)]
                operator.wait("both hosts to be there", runs, "done")
            yield made
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _late(there: Bed) -> Figure:
    """Read the events of runs repeatedly where they are written and where they are mirrored."""
    with Operator(there, "late").entered() as operator:
        runs = operator.launch(TALKING, seconds=SECONDS, per_second=PER_SECOND)
        operator.wait("all runs to run", runs, "running")
        pairs = [(spooled(operator, run)[0] / EVENTS, operator.run_dir(run) / EVENTS) for run in runs]
        sizes = [([(0.0, 0)], [(0.0, 0)]) for _ in pairs]
        deadline = time.monotonic() + SECONDS * 0.8
        while time.monotonic() < deadline:
            for pair, seen in zip(pairs, sizes, strict=True):
                for path, steps in zip(pair, seen, strict=True):
                    size = path.stat().st_size if path.exists() else 0
                    if size > steps[-1][1]:
                        steps.append((time.monotonic(), size))
            time.sleep(LOOK_S)
        late = [delay * 1000 for there_, here in sizes for delay in _delays(there_[1:], here[1:])]
        operator.wait("all runs to end", runs, "done")
    middle, worst = percentile(late, 0.5), percentile(late, 0.99)
    name = f"line on the host to the operator's file, {TALKING} runs at {PER_SECOND}/s, p50 / p99"
    return Figure(
        name,
        f"{middle:.0f} / {worst:.0f} ms",
        f"look: {LOOK_S * 1000:.0f} ms",
        "25 / 120 ms",
        middle <= 25 and worst <= 120,
    )


def _delays(there: Sequence[tuple[float, int]], here: Sequence[tuple[float, int]]) -> Iterator[float]:
    """Yield each size's delay in seconds; a size that never arrived counts until the end."""
    last = max((moment for moment, _ in (*there, *here)), default=0.0)
    mirrored = iter(here)
    moment, reached = next(mirrored, (last, 1 << 62))
    for written, size in there[:-1]:
        while reached < size:
            moment, reached = next(mirrored, (last, 1 << 62))
        yield max(0.0, moment - written)


def _many(there: Bed) -> Iterator[Figure]:
    """The same no-op runs on 2 hosts of 16 slots, and here with 32 places."""
    with Operator(there, "local", {**AGENT, "max_running": 2 * SLOTS}).entered() as operator:
        _, local = _wall(operator, "process")
    with Operator(there, "many").entered() as operator:
        accepted, remote = _wall(operator, "hosts")
    ratio = remote / local
    name = f"{NO_OP} no-op runs, 2 hosts of {SLOTS} slots against {2 * SLOTS} places here: wall time"
    yield Figure(name, f"{ratio:.2f}x ({remote:.1f} s)", f"here: {local:.1f} s", "1.3x", ratio <= 1.3)
    yield Figure(f"  launch of {NO_OP} to the last sign", f"{accepted:.1f} s", "none measured", "5 s", accepted <= 5)


def _wall(operator: Operator, runner: str) -> tuple[float, float]:
    """Return the time until all runs were accepted, and until all had ended."""
    wanted = [RunRequest(task=operator.task(number, 0), runner=runner) for number in range(NO_OP)]
    began = time.monotonic()
    runs = Engine.open(str(operator.root)).launch(wanted, background=True)
    accepted = time.monotonic() - began
    open_runs = {str(operator.run_dir(run.run_id) / RESULT) for run in runs}

    def all_ended() -> bool:
        open_runs.difference_update([path for path in open_runs if os.path.exists(path)])
        return not open_runs

    wait_until(all_ended, "all runs to end", 600)
    wall = time.monotonic() - began
    operator.wait("all to be done", [run.run_id for run in runs], "done")
    assert all(len(operator.starts(run.run_id)) == 1 for run in runs[::20])
    return accepted, wall


def _faults(there: Bed) -> Figure:
    """Lines that the operator does not have exactly once after random faults, of all lines of the children."""
    said = wrong = faults = 0
    for seed in SEEDS:
        plan = draw(seed, seconds=SWEEP_S, runs=SWEEP_RUNS, hosts=there.hosts)
        with Operator(there, f"sweep-{seed}").entered() as operator, operator.watched() as watch:
            runs = Sweep(there, operator, watch).play(plan)
            faults += len(plan.faults)
            said += sum(len(lines(operator.run_dir(run))) for run in runs)
            wrong += sum(len(not_once(operator, run)) for run in runs)
    name = f"lines lost or doubled in {faults} faults of {len(SEEDS) * SWEEP_RUNS} runs"
    return Figure(name, f"{wrong} of {said:,}", "none measured", "0", wrong == 0)
