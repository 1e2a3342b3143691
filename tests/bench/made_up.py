"""Run directories made without starting anything, for benchmarks of those who only look."""

from __future__ import annotations

import fcntl
import os

import msgspec
from subdeck.core import artifacts, paths
from subdeck.core.artifacts import RunnerFacts
from subdeck.core.events import AssistantText, RunEnded, RunStarted, encode_event
from subdeck.core.processes import boot_id, host, pid_namespace, start_time
from subdeck.core.runs import LaunchedBy, RunMeta, RunReason, RunResult, RunStatus


def run_id(number: int) -> str:
    return f"20261101-{number // 3600 % 24:02d}{number // 60 % 60:02d}{number % 60:02d}-{number:06x}"


def meta(number: int, cwd: str) -> RunMeta:
    return RunMeta(
        run_id=run_id(number),
        task=f"find where requests of kind {number} are authenticated, and say which file decides",
        cwd=cwd,
        agent="offline",
        agent_command=("/usr/bin/offline",),
        runner="process",
        created_at=paths.now_iso(),
        launched_by=LaunchedBy("operator", "app"),
        background=True,
        preset="repo-scout",
        resolved_model="offline/reader",
    )


def finished(project: paths.Project, count: int) -> None:
    """Write runs that have ended."""
    for number in range(count):
        made = meta(number, project.root)
        os.close(artifacts.create_run(project.runs, made, made.task))
        result = RunResult(
            run_id=made.run_id,
            status=RunStatus.COMPLETED,
            reason=RunReason.DONE,
            written_by="wrapper",
            final_text="31 functions in 6 files, the first one in src/auth.py:40\n" * 6,
            started_at=made.created_at,
            ended_at=paths.now_iso(),
            duration_ms=4200,
        )
        run_dir = project.run_dir(made.run_id)
        with open(os.path.join(run_dir, paths.EVENTS), "wb") as file:
            file.write(encode_event(AssistantText(seq=1, ts=paths.now_iso(), text="31 functions")))
            file.write(encode_event(RunEnded(seq=2, ts=paths.now_iso(), status="completed", reason="done")))
        with open(os.path.join(run_dir, paths.RESULT), "wb") as file:
            file.write(msgspec.json.encode(result))


class HeldRun:
    """A run that this process holds, as a wrapper would: locked, with a doorbell, its events written on demand."""

    def __init__(self, project: paths.Project, number: int) -> None:
        made = meta(number, project.root)
        self.run_id = made.run_id
        os.makedirs(project.active, exist_ok=True)
        self._lock = artifacts.create_run(project.runs, made, made.task)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        run_dir = project.run_dir(made.run_id)
        own = os.getpid()
        facts = RunnerFacts("process", host(), boot_id(), pid_namespace(), own, start_time(own))
        artifacts.write_runner(run_dir, facts)
        flags = os.O_WRONLY | os.O_CREAT
        self._events = os.open(os.path.join(run_dir, paths.EVENTS), flags | os.O_APPEND, 0o600)
        self._bell = os.open(os.path.join(project.active, made.run_id), flags, 0o600)
        self.seq = 1
        os.write(
            self._events,
            encode_event(RunStarted(seq=1, ts=paths.now_iso(), pid=own, child_pid=own, attempt=1, max_attempts=1)),
        )

    def say(self, text: str) -> int:
        """Write one event and ring; answer its number."""
        self.seq += 1
        os.write(self._events, encode_event(AssistantText(seq=self.seq, ts=paths.now_iso(), text=text)))
        os.pwrite(self._bell, msgspec.json.encode(artifacts.Doorbell(self.seq)) + b"\n", 0)
        return self.seq
