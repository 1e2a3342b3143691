"""Following many runs: the latency of an update, the cost of waiting for one."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from subdeck.core.engine import Engine

from .busy import Writer, made_project
from .figures import Figure, cpu_seconds, forks_so_far, percentile, spawned_so_far, usually

RUNS = usually(100, smoke=5)
PER_SECOND = 10
SECONDS = usually(10.0, smoke=1.0)
IDLE_SECONDS = usually(20.0, smoke=0.5)
SETTLE_SECONDS = usually(3.0, smoke=0.2)


def measure() -> Iterator[Figure]:
    yield from _busy()
    yield from _idle()


def _busy() -> Iterator[Figure]:
    seen: dict[str, list[tuple[int, float]]] = {}
    with made_project() as project, Writer(project, RUNS, per_second=PER_SECOND, seconds=SECONDS) as writer:
        deadline = time.monotonic() + SECONDS + 10
        for number, update in enumerate(Engine.open(project.root).updates(threading.Event())):
            now = time.monotonic()
            if not number:
                writer.begin()
            for run in update.runs:
                seen.setdefault(run.run_id, []).append((run.last_seq, now))
            if sum(steps[-1][0] >= 1 + PER_SECOND * SECONDS for steps in seen.values()) == RUNS or now > deadline:
                break
        written = writer.written()
    late: list[float] = []
    lost = 0
    for run_id, moments in written.items():
        steps = iter(seen[run_id])
        reached, moment = next(steps)
        for seq, wrote in enumerate(moments, start=2):
            while reached < seq:
                reached, moment = next(steps, (sys.maxsize, -1.0))
            if moment < 0:
                lost += 1
            else:
                late.append((moment - wrote) * 1000)
    middle, worst = percentile(late, 0.5), percentile(late, 0.99)
    name = f"event written to update, {RUNS} runs at {PER_SECOND}/s, p50 / p99"
    reached_it = middle <= 25 and worst <= 80 and not lost
    yield Figure(
        name,
        f"{middle:.0f} / {worst:.0f} ms, {lost} lost",
        "none measured",
        "25 / 80 ms, 0 lost",
        reached_it,
    )


def _idle() -> Iterator[Figure]:
    with made_project() as project, Writer(project, RUNS):
        code = (
            "import sys, threading; from subdeck.core.engine import Engine\n"
            "for update in Engine.open(sys.argv[1]).updates(threading.Event()): print(len(update.runs), flush=True)"
        )
        follower = subprocess.Popen((sys.executable, "-c", code, project.root), stdout=subprocess.PIPE)
        assert follower.stdout
        follower.stdout.readline()
        time.sleep(SETTLE_SECONDS)
        before, forks = cpu_seconds(follower.pid), forks_so_far()
        time.sleep(IDLE_SECONDS)
        share = (cpu_seconds(follower.pid) - before) / IDLE_SECONDS * 100
        children = spawned_so_far(follower.pid)
        spawned = forks_so_far() - forks
        follower.kill()
        follower.communicate()
    measured = f"{share:.2f} % of a core; {children} processes"
    floor = f"machine: {spawned} forks"
    yield Figure(f"engine, {RUNS} running idle runs", measured, floor, "1 %; 0", share < 1 and not children)
