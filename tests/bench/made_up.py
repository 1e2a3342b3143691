"""Run directories made without starting anything, for benchmarks of readers."""

from __future__ import annotations

import fcntl
import os

import msgspec
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.run import artifacts
from subdeck.core.run.artifacts import RunnerFacts
from subdeck.core.run.events import (
    AssistantText,
    Event,
    RunEnded,
    RunStarted,
    Thinking,
    ToolCall,
    ToolResult,
    UsageReported,
    encode_event,
)
from subdeck.core.run.model import LaunchedBy, RunMeta, RunReason, RunResult, RunStatus
from subdeck.core.run.proven import sealed
from subdeck.core.system import files
from subdeck.core.system.processes import boot_id, host, pid_namespace, start_time

LAST = "the last word"


def run_id(number: int) -> str:
    return f"20261101-{number // 3600 % 24:02d}{number // 60 % 60:02d}{number % 60:02d}-{number:06x}"


def meta(number: int, cwd: str) -> RunMeta:
    return RunMeta(
        run_id=run_id(number),
        task=f"#{number} find where requests are authenticated, and say which file decides",
        cwd=cwd,
        agent="offline",
        agent_command=("/usr/bin/offline",),
        runner="process",
        created_at=paths.now_iso(),
        launched_by=LaunchedBy("operator", "app"),
        background=True,
        preset="repo-scout",
        resolved_model="offline/reader",
        result_signed=True,
    )


def finished(project: paths.Project, count: int, first: int = 0) -> None:
    """Write runs that have ended, with two events each."""
    for number in range(first, first + count):
        made = meta(number, project.root)
        run_dir = finish(project, made)
        with open(os.path.join(run_dir, paths.EVENTS), "wb") as file:
            file.write(encode_event(AssistantText(seq=1, ts=paths.now_iso(), text="31 functions")))
            file.write(encode_event(RunEnded(seq=2, ts=paths.now_iso(), status="completed", reason="done")))


def finish(project: paths.Project, made: RunMeta) -> str:
    """Write a run that has ended, without its events; return its directory."""
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
    with open(os.path.join(run_dir, paths.RESULT), "wb") as file:
        file.write(sealed(run_dir, paths.RESULT, msgspec.json.format(msgspec.json.encode(result), indent=1)))
    return run_dir


class HeldRun:
    """A run held by this process, as by a wrapper: locked, with an activity file, its events written on demand."""

    def __init__(self, project: paths.Project, number: int, made: RunMeta | None = None, began: str = "") -> None:
        """Hold the run of a number, or `made`; it began now, or at an ISO time."""
        made = made or meta(number, project.root)
        self.run_id = made.run_id
        os.makedirs(project.active, exist_ok=True)
        self._lock = artifacts.create_run(project.runs, made, made.task)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        run_dir = project.run_dir(made.run_id)
        own = os.getpid()
        facts = RunnerFacts("process", host(), boot_id(), pid_namespace(), own, start_time(own))
        files.write_whole(os.path.join(run_dir, paths.RUNNER), msgspec.json.encode(facts))
        flags = os.O_WRONLY | os.O_CREAT
        self._events = os.open(os.path.join(run_dir, paths.EVENTS), flags | os.O_APPEND, 0o600)
        self._bell = os.open(os.path.join(project.active, made.run_id), flags, 0o600)
        self.seq = 1
        os.write(
            self._events,
            encode_event(
                RunStarted(seq=1, ts=began or paths.now_iso(), pid=own, child_pid=own, attempt=1, max_attempts=1)
            ),
        )

    def close(self) -> None:
        """Release it without an end, as a dying wrapper does."""
        for descriptor in (self._lock, self._events, self._bell):
            os.close(descriptor)

    def say(self, text: str) -> int:
        """Write one event and its activity; return its number."""
        return self.write(AssistantText(text=text))

    def write(self, event: Event, at: float | None = None) -> int:
        """Write an event under the next number and its activity, now or as at an earlier time; return the number."""
        self.seq += 1
        ts = paths.now_iso() if at is None else paths.iso_time(at)
        os.write(self._events, encode_event(replace(event, seq=self.seq, ts=ts)))
        os.pwrite(self._bell, msgspec.json.encode(artifacts.ActivityRecord(self.seq)) + b"\n", 0)
        if at is not None:
            os.utime(self._bell, (at, at))
        return self.seq

    def writing(self, sentence: str) -> None:
        """Show a sentence that is being written."""
        record = msgspec.json.encode(artifacts.ActivityRecord(self.seq, sentence)) + b"\n"
        os.pwrite(self._bell, record, 0)
        os.ftruncate(self._bell, len(record))


def long_run(project: paths.Project, number: int, events: int) -> RunMeta:
    """Write a finished run with so many events of about 300 bytes; the last text is `LAST`."""
    made = meta(number, project.root)
    finish(project, made)
    with open(os.path.join(project.run_dir(made.run_id), paths.EVENTS), "wb", buffering=1 << 20) as file:
        for seq in range(1, events):
            file.write(encode_event(replace(at_work(seq), seq=seq, ts=_moment(seq))))
        last = AssistantText(seq=events, ts=_moment(events), text=LAST)
        file.write(encode_event(last))
    return made


def at_work(number: int) -> Event:
    """Return a child's event of this number: it thinks, calls a tool, reads, counts tokens, speaks."""
    call_id = f"call_{number - number % 5:012d}"
    path = f"src/part_{number % 97}/module_{number % 1009}.ts"
    match number % 5:
        case 1:
            return Thinking(text=f"hm {number}: the middleware may be mounted twice, so the order of the two matters")
        case 2:
            return ToolCall(tool_call_id=call_id, tool_name="read", args={"path": path, "offset": number, "limit": 80})
        case 3:
            lines = "\n".join(
                f"{line}: export const handler{line} = wrap(check{number % line});" for line in range(1, 14)
            )
            return ToolResult(tool_call_id=call_id, tool_name="read", is_error=False, content=lines, duration_ms=12)
        case 4:
            return UsageReported(
                input=3,
                output=number % 400,
                cache_read=12000,
                cache_write=210,
                cost=0.0003,
                model="m",
                stop_reason="stop",
            )
        case _:
            return AssistantText(
                text=f"event {number}: {path} checks the token before the handler; next I'm looking at its mount point"
            )


def _moment(second: int) -> str:
    day, hour, minute = 1 + second // 86400 % 28, second // 3600 % 24, second // 60 % 60
    return f"2026-11-{day:02d}T{hour:02d}:{minute:02d}:{second % 60:02d}.000Z"
