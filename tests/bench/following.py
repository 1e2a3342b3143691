"""Following many runs: how late an update is, what it costs to wait for one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import msgspec
from subdeck.core.engine import Engine
from subdeck.core.paths import Project

from .figures import Figure, cpu_seconds, percentile

RUNS = 100
PER_SECOND = 10
SECONDS = 10.0
IDLE_SECONDS = 20.0


def measure() -> Iterator[Figure]:
    yield from _busy()
    yield from _idle()


def _project(directory: str) -> Project:
    os.mkdir(os.path.join(directory, ".git"))
    return Project(os.path.realpath(directory))


def _writer(project: Project, events: float) -> subprocess.Popen[bytes]:
    argv = (sys.executable, "-m", "tests.bench.writer", project.root, str(RUNS), str(PER_SECOND), str(events))
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _busy() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        project = _project(directory)
        writer = _writer(project, SECONDS)
        assert writer.stdin and writer.stdout
        writer.stdout.readline()
        seen: dict[str, list[tuple[int, float]]] = {}
        stop = threading.Event()
        for update in Engine.open(directory).updates(stop):
            now = time.monotonic()
            if not writer.stdin.closed:
                writer.stdin.close()
            for run in update.runs:
                seen.setdefault(run.run_id, []).append((run.last_seq, now))
            if sum(steps[-1][0] >= 1 + PER_SECOND * SECONDS for steps in seen.values()) == RUNS:
                break
            if writer.poll() is not None and now - seen_last(seen) > 5:
                break
        written: dict[str, list[float]] = msgspec.json.decode(writer.stdout.read())
        writer.wait()
        writer.stdout.close()
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


def seen_last(seen: dict[str, list[tuple[int, float]]]) -> float:
    return max(steps[-1][1] for steps in seen.values())


def _idle() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        project = _project(directory)
        writer = _writer(project, 0)
        assert writer.stdin and writer.stdout
        writer.stdout.readline()
        code = (
            "import sys, threading; from subdeck.core.engine import Engine\n"
            "for update in Engine.open(sys.argv[1]).updates(threading.Event()): print(len(update.runs), flush=True)"
        )
        follower = subprocess.Popen((sys.executable, "-c", code, directory), stdout=subprocess.PIPE)
        assert follower.stdout
        follower.stdout.readline()
        time.sleep(3)
        before, forks = cpu_seconds(follower.pid), _forks()
        time.sleep(IDLE_SECONDS)
        share = (cpu_seconds(follower.pid) - before) / IDLE_SECONDS * 100
        children = _children(follower.pid)
        spawned = _forks() - forks
        follower.kill()
        follower.communicate()
        writer.communicate()
    measured = f"{share:.2f} % of a core; {children} processes"
    floor = f"machine: {spawned} forks"
    yield Figure(f"engine, {RUNS} running idle runs", measured, floor, "1 %; 0", share < 1 and not children)


def _forks() -> int:
    with open("/proc/stat", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("processes")).split()[1])


def _children(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return len(file.read().split())
