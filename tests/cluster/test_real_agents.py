"""pi and Claude Code on another machine, with a scripted model on that machine only."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from subdeck.core import paths
from subdeck.core.run import artifacts
from subdeck.core.run.enumerations import RunReason
from subdeck.core.run.model import RunResult
from subdeck.core.spec.request import RunRequest

from tests.real.lab import NEWER_PI
from tests.real.model_server import ModelServer, call, said
from tests.real.programs import CLAUDE, PI

from .bed import Bed
from .checks import difference
from .operator import Operator

HOST = "h1"
PATIENCE_S = 90.0


@contextmanager
def operated(bed: Bed, name: str, program: str, *, env: tuple[str, ...] = ()) -> Iterator[Operator]:
    """Put the program on PATH, there and here; `env` names variables to pass on."""
    link = bed.programs / name
    link.unlink(missing_ok=True)
    link.symlink_to(program)
    with Operator(bed, name, {"agent": name}, env=list(env)).entered() as operator:
        (operator.root / "notes.md").write_text("a note\n")
        yield operator


def run_to_end(operator: Operator, model: str) -> RunResult:
    """Let a run read a file there; all its files are here."""
    wanted = RunRequest(task="Read notes.md.", runner="hosts", host=HOST, model=model)
    (run,) = operator.engine.launch([wanted], background=True)
    (run,) = operator.engine.wait([run.run_id], timeout=PATIENCE_S)
    result = artifacts.read_result(str(operator.run_dir(run.run_id)))
    assert result, operator.relay_log
    assert "" == difference(operator, run.run_id)
    return result


@pytest.mark.pi
@NEWER_PI
def test_pi(bare_bed: Bed, pi_executable: str) -> None:
    """pi uses its tools on the host. Its answer, events and conversation come back."""
    node = shutil.which("node")
    link = bare_bed.programs / "node"
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.realpath(str(node)))
    with bare_bed.inside(HOST):
        model = ModelServer(call("read", path="notes.md"), said("It says: a note."))
    with model, operated(bare_bed, "pi", pi_executable) as operator:
        for place in (HOST, operator.place):
            PI.configure(bare_bed.home(place), model.url)
        result = run_to_end(operator, PI.model)

        assert (RunReason.DONE, "It says: a note.") == (result.reason, result.final_text), result.error_message
        assert b"a note" in (operator.run_dir(result.run_id) / paths.CHILD_SESSION).read_bytes()
        assert b"a note" in (operator.run_dir(result.run_id) / paths.EVENTS).read_bytes()


@pytest.mark.agents
def test_claude_code(bare_bed: Bed, claude_executable: str) -> None:
    """Claude Code on the host finds its key and model in the variables that `hosts.env` lists."""
    with bare_bed.inside(HOST):
        model = ModelServer(models=[CLAUDE.model.rpartition("/")[2]])
    travel = CLAUDE.configure(bare_bed.home(HOST), model.url)
    with model, operated(bare_bed, "claude", claude_executable, env=tuple(travel)) as operator:
        reading = call("Read", file_path=str(operator.root / "notes.md"))
        model.script(reading, said("It says: a note."), repeats=False)
        os.environ.update(travel)
        result = run_to_end(operator, CLAUDE.model)

        assert (RunReason.DONE, "It says: a note.") == (result.reason, result.final_text), result.error_message
        assert b"a note" in (operator.run_dir(result.run_id) / paths.EVENTS).read_bytes()
