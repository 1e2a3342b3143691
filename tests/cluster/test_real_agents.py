"""pi and Claude Code on another machine, with a scripted model on that machine only."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.run import artifacts
from subdeck.core.run.kinds import RunReason
from subdeck.core.run.model import RunRequest, RunResult

from tests.core.real_claude import MODEL as CLAUDE_MODEL, call, text
from tests.core.real_pi import NEWER_PI, NO_RETRIES, called, said
from tests.fake_llm import FakeLLM
from tests.mock_models import MockModels

from .bed import Bed
from .checks import difference
from .operator import Operator

HOST = "h1"
PATIENCE_S = 90.0


@contextmanager
def operated(bed: Bed, name: str, program: str, *, env: tuple[str, ...] = ()) -> Iterator[Operator]:
    """Put the program on PATH, there and here; `env` travels."""
    link = bed.programs / name
    link.unlink(missing_ok=True)
    link.symlink_to(program)
    with Operator(bed, name, {"agent": name}, env=list(env)).entered() as operator:
        (operator.root / "notes.md").write_text("a note\n")
        yield operator


def run_to_end(operator: Operator, model: str) -> RunResult:
    """Have a run read a file there; all that it left is here."""
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
    log = bare_bed.base / "requests.jsonl"
    turns = [called(("read", {"path": "notes.md"})), said("It says: a note.")]
    with bare_bed.inside(HOST):
        server = FakeLLM({"turns": turns, "index_by": "requests"}, log_path=str(log))
    with server, operated(bare_bed, "pi", pi_executable) as operator:
        for place in (HOST, operator.place):
            _write_pi(bare_bed.home(place) / ".pi" / "agent", server.base_url)
        result = run_to_end(operator, "fake/test")

        assert (RunReason.DONE, "It says: a note.") == (result.reason, result.final_text), result.error_message
        assert b"a note" in (operator.run_dir(result.run_id) / paths.CHILD_SESSION).read_bytes()
        assert b"a note" in (operator.run_dir(result.run_id) / paths.EVENTS).read_bytes()


def _write_pi(directory: Path, url: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    models = [{"id": "test", "contextWindow": 10_000_000}]
    provider: dict[str, Any] = {"baseUrl": url, "api": "openai-completions", "apiKey": "sk-fake", "models": models}
    (directory / "models.json").write_text(json.dumps({"providers": {"fake": provider}}))
    (directory / "settings.json").write_text(json.dumps(NO_RETRIES))


@pytest.mark.agents
def test_claude_code(bare_bed: Bed, claude_executable: str) -> None:
    """Claude Code on the host finds its key and model in the variables that `hosts.env` lists."""
    script = {
        "turns": [call("Read", file_path="notes.md"), text("It says: a note.")],
        "after": "error",
        "models": ["claude-sonnet-4-5"],
    }
    with bare_bed.inside(HOST):
        mock = MockModels(script, log_path=str(bare_bed.base / "claude.jsonl"))
    travel = {
        "ANTHROPIC_BASE_URL": mock.url,
        "ANTHROPIC_API_KEY": "sk-fake",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "IS_SANDBOX": "1",
    }
    with mock, operated(bare_bed, "claude", claude_executable, env=tuple(travel)) as operator:
        script["turns"][0] = call("Read", file_path=str(operator.root / "notes.md"))
        os.environ.update(travel)
        result = run_to_end(operator, CLAUDE_MODEL)

        assert (RunReason.DONE, "It says: a note.") == (result.reason, result.final_text), result.error_message
        assert b"a note" in (operator.run_dir(result.run_id) / paths.EVENTS).read_bytes()
