"""Make engines, requests and runs for tests; agents are the small programs in `tests/children`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts, second_copy, signature
from subdeck.core.run.artifacts import RunnerFacts
from subdeck.core.run.events import Event, RunStarted
from subdeck.core.run.model import STATUS_OF, LaunchedBy, RunMeta, RunReason, RunResult
from subdeck.core.run.snapshot import Ended, Queued, Running, RunSnapshot
from subdeck.core.runners.process import WrapperCall
from subdeck.core.spec.request import RunRequest
from subdeck.core.system import files, processes

from .loaded import CHANGES
from .waiting import wait_until

CHILDREN = Path(__file__).parent / "children"
PUPPET = (sys.executable, "-I", "-S", str(CHILDREN / "puppet.py"))
RECORDER = (sys.executable, "-I", "-S", str(CHILDREN / "recorder.py"))
BRIEF = (str(CHILDREN / "brief.sh"),)

GRACE = 0.2
"""Seconds between the steps that end an agent, so that tests of the last step stay short."""


def write_settings(command: Sequence[str] = PUPPET, **others: Any) -> None:
    """Configure the agent `puppet` with this command in the private home; `others` are further keys."""
    settings = {
        "agents": {"puppet": {"command": list(command)}},
        "agent": "puppet",
        "default_model": "fake/puppet",
        "grace_seconds": GRACE,
        **others,
    }
    file = Path(paths.user_settings_file())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings, indent=1))


def open_engine(
    project_dir: Path, command: Sequence[str] = PUPPET, *, session: str = "operator", **settings: Any
) -> Engine:
    """Open a project whose agent runs `command`."""
    write_settings(command, **settings)
    return Engine.open(str(project_dir), session=session)


def run_wrappers_with(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """Run this code in wrappers started from now on, to change them."""
    code = f"""
import sys
from subdeck.core.run import artifacts
from subdeck.core.system import cgroup
{change}
from subdeck.core.wrapper.__main__ import main
sys.exit(main(sys.argv[1:]))
"""

    def argv(call: WrapperCall) -> tuple[str, ...]:
        words = (sys.executable, "-P", "-E", "-c", code, *call.arguments)
        CHANGES[words] = change
        return words

    monkeypatch.setattr(WrapperCall, "argv", property(argv))


def request(*script: str, **others: Any) -> RunRequest:
    """Return the request for a one-off run of the puppet; each argument is one of its commands."""
    return RunRequest(task="\n".join(script), **others)


def start(engine: Engine, *script: str, background: bool = True, **others: Any) -> RunSnapshot:
    """Launch one run of the puppet."""
    (run,) = engine.launch([request(*script, **others)], background=background)
    return run


def run_to_end(engine: Engine, *script: str, **others: Any) -> RunSnapshot:
    """Launch one run of the puppet and wait for its end."""
    return wait_for_end(engine, start(engine, *script, **others).run_id)


def wait_for_end(engine: Engine, run_id: str) -> RunSnapshot:
    (run,) = engine.wait([run_id], timeout=90)
    assert run.has_ended, f"the run did not end: {run}"
    return run


def result_of(engine: Engine, run: RunSnapshot) -> RunResult:
    result = engine.result(run.run_id)
    assert result is not None
    return result


def events_of(engine: Engine, run: RunSnapshot) -> list[Event]:
    """Read all events of a run from its file."""
    return engine.events(run.run_id).read()


def started(engine: Engine, run: RunSnapshot) -> RunStarted:
    """Wait for the first start of the agent, and return its recorded facts."""

    def first() -> RunStarted | None:
        return next((event for event in events_of(engine, run) if isinstance(event, RunStarted)), None)

    return wait_until(first, "the child to start")


def run_dir(engine: Engine, run: RunSnapshot) -> Path:
    return Path(engine.project.run_dir(run.run_id))


def copy_run(engine: Engine, run: RunSnapshot, copy: Path) -> None:
    """Copy the directory of a finished run, after its wrapper has tidied up."""
    wait_until_gone(started(engine, run).pid)
    shutil.copytree(run_dir(engine, run), copy)


def pid_in(path: Path) -> int:
    """Wait for a file that a puppet's `detach` writes; return the pid in it."""
    return int(wait_until(lambda: path.exists() and path.read_text(), f"a pid in {path.name}"))


def lives(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    began = processes.start_time(pid)
    return began is not None and processes.is_alive(pid, began)


def wait_until_gone(*pids: int) -> None:
    for pid in pids:
        wait_until(lambda pid=pid: not lives(pid), f"process {pid} to be gone")


def write_runner(run_dir: str | Path, facts: RunnerFacts) -> None:
    """Write a run's runner facts, instead of its wrapper."""
    files.write_whole(os.path.join(run_dir, paths.RUNNER), msgspec.json.encode(facts))
    second_copy.write(str(run_dir), paths.RUNNER, msgspec.json.encode(facts))


def make_meta(run_id: str | None = None, **others: Any) -> RunMeta:
    """Make the meta of a run that was never launched."""
    known: dict[str, Any] = {
        "task": "answer ok",
        "cwd": os.getcwd(),
        "agent": "puppet",
        "agent_command": PUPPET,
        "runner": "process",
        "created_at": paths.now_iso(),
        "launched_by": LaunchedBy("operator", "cli"),
    }
    return RunMeta(run_id=run_id or paths.new_run_id(), **{**known, **others})


def make_run(project: paths.Project, meta: RunMeta | None = None, *, bell: bool = True) -> tuple[RunMeta, int]:
    """Make the directory of a run without a wrapper; return its meta and the locked descriptor."""
    meta = meta or make_meta()
    lock = artifacts.create_run(project.runs, meta, meta.task)
    if bell:
        Path(project.active).mkdir(parents=True, exist_ok=True)
        Path(project.active, meta.run_id).touch()
    return meta, lock


def make_result(run_id: str, reason: RunReason = RunReason.DONE, **others: Any) -> RunResult:
    known: dict[str, Any] = {"written_by": "wrapper", "final_text": "ok", "ended_at": paths.now_iso()}
    return RunResult(run_id=run_id, status=STATUS_OF[reason], reason=reason, **{**known, **others})


def make_finished(project: paths.Project, meta: RunMeta | None = None, **result: Any) -> RunMeta:
    """Make the directory of a finished run."""
    meta, lock = make_run(project, meta, bell=False)
    os.close(lock)
    artifacts.write_result(project.run_dir(meta.run_id), make_result(meta.run_id, **result))
    return meta


def rewrite_meta(run_dir: str | Path, **fields: Any) -> None:
    """Change and sign a run's record, like this user's subdeck."""
    path = Path(run_dir, paths.META)
    record = json.loads(path.read_bytes()) | fields
    record.pop("mark", None)
    path.write_bytes(signature.with_signature(path.parent.name, json.dumps(record, indent=1).encode()))


def make_snapshot(meta: RunMeta | None = None, status: str = "completed", **fields: Any) -> RunSnapshot:
    """Make the snapshot of a run with this status; `fields` belong to the snapshot and its state."""
    own = {name: fields.pop(name) for name in RunSnapshot.__struct_fields__ if name in fields}
    return RunSnapshot(meta=meta or make_meta(), state=make_state(status, **fields), **own)


def make_state(status: str, **fields: Any) -> Queued | Running | Ended:
    match status:
        case "queued":
            return Queued(**fields)
        case "running":
            return Running(**({"started_at": paths.now_iso()} | fields))
        case _:
            return Ended(**({"reason": USUAL_REASONS[status], "ended_at": paths.now_iso()} | fields))


USUAL_REASONS = {"completed": RunReason.DONE, "failed": RunReason.MODEL_ERROR, "aborted": RunReason.STOPPED}


def changed(run: RunSnapshot, **fields: Any) -> RunSnapshot:
    """Return the same run with another state."""
    return replace(run, state=replace(run.state, **fields))


def end_of(run: RunSnapshot) -> Ended:
    assert run.end, f"the run did not end: {run}"
    return run.end


def ahead_of(run: RunSnapshot) -> int | None:
    """Return the number of runs before a queued one; None for any other run."""
    return run.state.ahead if isinstance(run.state, Queued) else None
