"""Runs without a holder, and their leftover processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run.artifacts import RunnerFacts
from subdeck.core.run.events import Event, encode_event
from subdeck.core.system import processes

from tests.factories import make_run, write_runner

HERE = {"host": processes.host(), "boot_id": processes.boot_id(), "pid_namespace": processes.pid_namespace()}


def facts(**others: object) -> RunnerFacts:
    return RunnerFacts(**{"kind": "process", "pid": 1, "pid_started": 0, **HERE, **others})


def abandoned(project: Project, *events: Event, runner: RunnerFacts | None = None) -> tuple[str, Path]:
    """Make a run without a holder; return its id and directory."""
    meta, lock = make_run(project)
    directory = Path(project.run_dir(meta.run_id))
    (directory / paths.EVENTS).write_bytes(b"".join(map(encode_event, events)))
    write_runner(str(directory), runner or facts())
    os.close(lock)
    return meta.run_id, directory


def sleeper(**environment: str) -> int:
    """Start a process that is reaped only at the end of the test session; return its pid."""
    process = subprocess.Popen(
        ["sleep", "1000"], env=os.environ | environment, start_new_session=True, stdin=subprocess.DEVNULL
    )
    SLEEPERS.append(process)
    return process.pid


SLEEPERS: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def no_sleepers():
    yield
    for process in SLEEPERS:
        process.kill()
        process.wait()
    SLEEPERS.clear()
