"""The operator, who launches runs on the hosts of a bed, in a separate project, and watches their states."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from subdeck.core.engine import Engine
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest
from subdeck.core.system import processes

from tests import isolation
from tests.core.command_line import Done, subdeck
from tests.waiting import wait_until

from .bed import OPERATOR, Bed

COUNTED = (sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "children" / "counted.py"))
AGENT: dict[str, Any] = {
    "agents": {"counted": {"command": list(COUNTED)}},
    "agent": "counted",
    "default_model": "fake/counted",
    "grace_seconds": 0.5,
    "max_parallel": 100,
}
"""Settings of hosts and operators."""
REACH_S = 6.0
LOOK_S = 0.1
UNKNOWN = "unknown"
RELAY = "subdeck.core.hosts.relay"


class Operator:
    """Lives on the network of the bed's operator while it is entered, with its own HOME and project."""

    def __init__(self, bed: Bed, name: str, agent: dict[str, Any] = AGENT, **hosts: Any) -> None:
        """`agent` are settings, `hosts` further keys of them below `hosts:`."""
        self.bed, self.place = bed, f"{OPERATOR}-{name}"
        self.root = bed.home(self.place) / "project"
        self._starts = bed.home(self.place) / "starts"
        self._starts.mkdir(exist_ok=True)
        (self.root / ".git").mkdir(parents=True, exist_ok=True)
        (self.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        bed.write_settings(self.place, **agent, hosts={"reach": REACH_S, **hosts})

    @contextmanager
    def entered(self) -> Iterator[Operator]:
        """Be the operator: this thread's network, this process's environment; at the end no relay and no child is
        left.
        """
        before = dict(os.environ)
        isolation.enter(self.bed.environment(self.place))
        try:
            with self.bed.inside(OPERATOR):
                yield self
        finally:
            self.kill_relay()
            for run in self._runs():
                if run.meta.task.startswith(f"{self._starts}/"):
                    self.finish([run.run_id])
            isolation.enter(before)

    @property
    def engine(self) -> Engine:
        return Engine.open(str(self.root))

    def task(self, number: int, seconds: float, per_second: float = 5) -> str:
        return f"{self._starts}/{number} {seconds:g} {per_second:g}"

    def launch(self, count: int, *, seconds: float = 60, per_second: float = 5, **request: Any) -> list[str]:
        """Launch runs that take so long, or until `finish`; return their ids."""
        first = len(self._runs()) + 1
        tasks = [self.task(first + number, seconds, per_second) for number in range(count)]
        wanted = [RunRequest(task=task, runner="hosts", **request) for task in tasks]
        return [run.run_id for run in self.engine.launch(wanted, background=True)]

    def finish(self, runs: Iterable[str]) -> None:
        """End the children of these runs."""
        for path in map(self._starts_of, runs):
            Path(f"{path}.end").touch()

    def starts(self, run_id: str) -> list[str]:
        """Return the hosts on which a run's child was started, as the child recorded them, one a start."""
        path = self._starts_of(run_id)
        lines = path.read_text().splitlines() if path.exists() else []
        assert all(line.startswith(f"{run_id} ") for line in lines), lines
        return [line.split()[1] for line in lines]

    def run_dir(self, run_id: str) -> Path:
        return Path(self.engine.project.run_dir(run_id))

    def now(self, run_id: str) -> RunSnapshot:
        (run,) = Engine.open(str(self.root), readonly=True).snapshots([run_id])
        return run

    def wait(self, what: str, runs: Iterable[str], *words: str, timeout: float = 60) -> None:
        """Wait until each of these runs has one of these states (`word_of`)."""
        remaining = set(runs)

        def all_do() -> bool:
            looked = Engine.open(str(self.root), readonly=True).snapshots(remaining)
            remaining.difference_update(run.run_id for run in looked if word_of(run) in words)
            return not remaining

        try:
            wait_until(all_do, what, timeout)
        except AssertionError as error:
            current = {run: (word_of(now := self.now(run)), now.end and now.end.message) for run in sorted(remaining)}
            raise AssertionError(f"{error}: {current}\n{self.relay_log[-3000:]}") from None

    def cli(self, *words: str) -> Done:
        return subdeck(*words, cwd=self.root)

    @property
    def relays(self) -> list[int]:
        return [pid for pid in self.bed.find(RELAY, self.place) if str(self.root) in processes.arguments(pid)]

    @property
    def relay_log(self) -> str:
        path = Path(self.engine.project.relay_log)
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def hosts_file(self) -> str:
        """The relay's record of its hosts."""
        path = Path(self.engine.project.hosts_file)
        return path.read_text() if path.exists() else ""

    def look(self) -> None:
        """Let a command wait for the runs, for hardly any time: a waiting command starts a missing relay."""
        open_runs = [run.run_id for run in self._runs() if not run.has_ended]
        if not open_runs:
            return
        done = self.cli("wait", *open_runs, "--timeout", "0.1")
        assert done.code in (0, 1, 3, 124), done.err

    def kill_relay(self) -> None:
        for pid in self.relays:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.relays, "the relay to be gone")

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """Read all runs of the project repeatedly, as readers do."""
        watch = Watch(str(self.root))
        watch.start()
        try:
            yield watch
        finally:
            watch.end()

    def _runs(self) -> tuple[RunSnapshot, ...]:
        return Engine.open(str(self.root), readonly=True).snapshots()

    def _starts_of(self, run_id: str) -> Path:
        return Path(self.now(run_id).meta.task.split()[0])


class Watch(threading.Thread):
    """Records the states of each run, each change with its time."""

    def __init__(self, root: str) -> None:
        super().__init__(daemon=True)
        self.seen: dict[str, list[tuple[float, str]]] = {}
        """By run id: moments of `time.monotonic` and states (`word_of`)."""
        self.fault: BaseException | None = None
        self._root = root
        self._over = threading.Event()

    def run(self) -> None:
        try:
            while not self._over.wait(LOOK_S):
                self._look()
        except BaseException as error:
            self.fault = error

    def _look(self) -> None:
        for run in Engine.open(self._root, readonly=True).snapshots():
            steps = self.seen.setdefault(run.run_id, [])
            if not steps or steps[-1][1] != word_of(run):
                steps.append((time.monotonic(), word_of(run)))

    def end(self) -> None:
        """Read the states once more, and stop."""
        if self._over.is_set():
            return
        self._over.set()
        self.join()
        if self.fault:
            raise self.fault
        self._look()

    def wait_for(self, count: int) -> set[str]:
        """Return the ids of the runs once so many were seen."""
        wait_until(lambda: len(self.seen) >= count, f"{count} runs to be seen")
        return set(self.seen)

    def words(self, run_id: str) -> list[str]:
        """Return the states of a run, in order."""
        return [word for _, word in self.seen.get(run_id, ())]

    def moment(self, run_id: str, word: str, *, after: float = 0.0) -> float:
        """Return when a run had a state for the first time after a moment; fails if it never had."""
        return next(moment for moment, seen in self.seen[run_id] if seen == word and moment >= after)


def word_of(run: RunSnapshot) -> str:
    """A run's state in a word: its reason if it has ended, `unknown` if no host confirms it."""
    if run.end:
        return str(run.end.reason)
    return UNKNOWN if run.elsewhere else str(run.status)
