"""Directories of a run that are renamed back and forth while its wrapper writes the result."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts
from subdeck.core.run.model import RunReason

from tests.core.project import renaming
from tests.factories import lives, open_engine, result_of, start, started
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

PLACES = (".pi", ".pi/subagents", ".pi/subagents/runs", "")


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


@pytest.mark.parametrize("way", renaming.WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_the_result_is_linked_meanwhile(engine: Engine, tmp_path: Path, place: str, way: str) -> None:
    """The run ends with its real result, and nothing else is changed."""
    race(engine, tmp_path, place, way)


def race(engine: Engine, tmp_path: Path, place: str, way: str) -> None:
    root, gate = engine.project.root, tmp_path / "gate"
    run = start(engine, "say One.", f"wait-for {gate}", "say Two.", "answer The truth.")
    started(engine, run)
    run_dir = engine.project.run_dir(run.run_id)
    path = f"{root}/{place}" if place else run_dir
    facts = artifacts.read_runner(run_dir)
    assert facts and lives(facts.pid)
    decoy = tmp_path / "decoy"
    below = Path(decoy, os.path.relpath(run_dir, path))
    shutil.copytree(run_dir, below, ignore=lambda *_: ["stdout.log"])
    before = contents(decoy)
    argv = [sys.executable, "-P", renaming.__file__, way, path, f"{path}-aside", str(decoy)]
    racer = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert racer.stdin is not None and racer.stdout is not None
    try:
        racer.stdout.readline()
        gate.touch()
        wait_until(lambda: not lives(facts.pid), "the wrapper to end", 40)
    finally:
        racer.stdin.close()
        assert 0 == racer.wait(20)
        racer.stdout.close()
    (ended,) = engine.wait([run.run_id], timeout=30)
    assert ended.has_ended, ended
    result = result_of(engine, ended)
    assert (RunReason.DONE, "The truth.", ()) == (result.reason, result.final_text, result.artifact_errors)
    if way != "exchange":  # which puts the decoy into the project for moments, so that files may be written into it
        assert before == contents(decoy)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}
