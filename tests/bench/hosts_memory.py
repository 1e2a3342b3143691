"""The memory of relay, agent and scheduler while very many runs on hosts talk.

`python -m tests.bench.hosts_memory ROOT FIRST COUNT PER_SECOND` acts as the wrappers of a host: it holds so many runs
in a spool, prints a line when all exist, and writes events at a steady pace until it is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.run.artifacts import RunnerFacts
from subdeck.core.run.enumerations import RunnerKind
from subdeck.core.run.placement import Permit, give_permit
from subdeck.core.system import files

from tests.cluster.bed import HEAD, WORKER, Bed, why_not
from tests.cluster.operator import Operator

from . import hosts, made_up
from .figures import Figure, not_measured, resident_mb, usually

RUNS, PER_SECOND = usually((500, 20), smoke=(6, 5))
WARM_S, WATCH_S = usually((20.0, 40.0), smoke=(0.5, 1.0))
TARGETS = {"relay": 70.0, "agent": 60.0, "scheduler": 60.0}
FLAT_MB = 3.0
"""Maximum growth from the warm state to the end."""
ROOT = Path(__file__).parents[2]


def measure() -> Iterator[Figure]:
    if why := why_not():
        yield not_measured("memory of runs on hosts", why)
        return
    with hosts.bed(slots=RUNS // 2) as there, Operator(there, "memory").entered() as operator, ExitStack() as stack:
        _make_spools(operator)
        for number, host in enumerate(there.hosts):
            stack.enter_context(_hold(operator, host, number * RUNS // 2))
        operator.look()
        runs = [made_up.run_id(number) for number in range(RUNS)]
        operator.wait("all runs to be vouched for", runs, "running", timeout=120)
        time.sleep(WARM_S)
        warm, events = _resident(there, operator), _mirrored(operator, runs)
        time.sleep(WATCH_S)
        late, more = _resident(there, operator), _mirrored(operator, runs) - events
    for name, target in TARGETS.items():
        is_flat = late[name] - warm[name] <= FLAT_MB
        yield Figure(
            f"{name}, {RUNS} running runs at {PER_SECOND}/s, resident",
            f"{late[name]:.0f} MB; {WATCH_S:.0f} s before {warm[name]:.0f}",
            f"mirrored: {more / WATCH_S:,.0f} events/s",
            f"{target:.0f} MB, flat",
            late[name] <= target and is_flat,
        )


def _make_spools(operator: Operator) -> None:
    """Have a run on each host, which makes this operator's spools; then no relay."""
    runs = [run for host in operator.bed.hosts for run in operator.launch(1, host=host, seconds=0)]
    operator.wait("them to end", runs, "done")
    operator.kill_relay()


@contextmanager
def _hold(operator: Operator, host: str, first: int) -> Iterator[None]:
    """Make runs that look as if started on a host, there and here; they talk until it is killed."""
    spool, project = operator.bed.spool(host), operator.engine.project
    spool_id = (spool / "id").read_text().strip()
    own = {run.run_id for run in operator.engine.snapshots() if operator.starts(run.run_id) == [host]}
    (relay,) = {
        path.parent.parent.name if path.parent.name == "done" else path.parents[3].name for path in _dirs(spool, own)
    }
    for number in range(first, first + RUNS // 2):
        made = replace(made_up.meta(number, project.root), runner=RunnerKind.HOSTS, agent="counted")
        os.close(artifacts.create_run(project.runs, made, made.task))
        run_dir = project.run_dir(made.run_id)
        facts = RunnerFacts(RunnerKind.HOSTS, host, boot_id="", pid_namespace="", pid=1)
        files.write_whole(os.path.join(run_dir, paths.RUNNER), msgspec.json.encode(facts))
        give_permit(run_dir, Permit(spool_id, host, paths.now_iso()))
        Path(project.active, made.run_id).touch()
    (worker, *_) = operator.bed.find(WORKER, host)
    command = (
        "nsenter",
        "-t",
        str(worker),
        "-p",
        "-m",
        "-u",
        "-n",
        f"--wd={ROOT}",
        sys.executable,
        "-m",
        __spec__.name,
    )
    numbers = (str(spool / relay), str(first), str(RUNS // 2), str(PER_SECOND))
    process = subprocess.Popen((*command, *numbers), env=operator.bed.environment(host), stdout=subprocess.PIPE)
    with process:
        try:
            assert process.stdout and process.stdout.readline()
            yield
        finally:
            operator.bed.send(signal.SIGKILL, __spec__.name, host)


def _dirs(spool: Path, runs: set[str]) -> list[Path]:
    return [path.parent for path in spool.rglob(paths.META) if path.parent.name in runs]


def _resident(there: Bed, operator: Operator) -> dict[str, float]:
    (relay,), scheduler = operator.relays, there.find("dask_scheduler", HEAD)
    agents = [pid for host in there.hosts for pid in there.find(WORKER, host)]
    return {
        "relay": resident_mb(relay),
        "agent": max(map(resident_mb, agents)),
        "scheduler": max(map(resident_mb, scheduler)),
    }


def _mirrored(operator: Operator, runs: list[str]) -> int:
    """Return how many events of all runs are here."""
    return sum((operator.run_dir(run) / paths.EVENTS).read_bytes().count(b"\n") for run in runs)


def main() -> None:
    root, first, count, per_second = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    held = [made_up.HeldRun(Project(root), number) for number in range(first, first + count)]
    print("ready", flush=True)
    pace = count * per_second
    began = time.monotonic()
    number = 0
    while True:
        while (now := time.monotonic()) < began + number / pace:
            time.sleep(max(0.0, began + number / pace - now))
        held[number % count].say(f"event {number}: I'm looking at how the parser treats a line that ends in the middle")
        number += 1


if __name__ == "__main__":
    main()
