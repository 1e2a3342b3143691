"""The agent's exact argv, stdin, environment and working directory."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine
from subdeck.core.runners.process import WrapperCall
from subdeck.core.spec.request import RunRequest

from tests.factories import RECORDER, end_of, lives, open_engine, run_dir, wait_for_end

pytestmark = pytest.mark.processes


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recorder's output file, named in the launcher's environment."""
    monkeypatch.setenv("RECORD", str(tmp_path / "record.json"))
    return tmp_path / "record.json"


@pytest.fixture
def engine(project_dir: Path, record: Path) -> Engine:
    return open_engine(project_dir, RECORDER)


def given(engine: Engine, record: Path, **asked: Any) -> dict[str, Any]:
    """Run the recorder; return its record and the run's directory."""
    (run,) = engine.launch([RunRequest(**{"task": "note this", **asked})], background=False)
    run = wait_for_end(engine, run.run_id)
    assert ("completed", "noted") == (run.status, end_of(run).message)
    return json.loads(record.read_text()) | {"run_id": run.run_id, "run_dir": str(run_dir(engine, run))}


def test_argv(engine: Engine, record: Path) -> None:
    """Without tools and prompt the agent gets mode, model and its own session file, and no part of the task."""
    facts = given(engine, record, task="--help @file")
    session = f"{facts['run_dir']}/child-session.jsonl"
    assert ["--mode", "json", "--model", "fake/puppet", "--session", session] == facts["argv"]


def test_argv_of_an_ad_hoc_run(engine: Engine, record: Path) -> None:
    """Tools are one argument, and the prompt is passed as a file."""
    facts = given(engine, record, tools=("read", "grep"), prompt="Be brief.", model="other/model")
    prompt = Path(facts["run_dir"], "system-prompt.md")
    assert ["--model", "other/model"] == facts["argv"][2:4]
    assert ["--tools", "read,grep", "--append-system-prompt", str(prompt)] == facts["argv"][6:]
    assert "Be brief." == prompt.read_text()


def test_no_tools(engine: Engine, record: Path) -> None:
    """An empty list of tools is passed as `--no-tools`."""
    assert "--no-tools" in given(engine, record, tools=())["argv"]


@pytest.mark.parametrize(
    "task",
    [
        "-",
        "--model evil",
        "@/etc/passwd look",
        "a\0b\0",
        "\x1b[31mred\x1b]0;title\x07",
        "one\ntwo\r\nthree\n\n",
        "[bold]x[/bold] {0} %s $(rm -rf ~) `id` ; & | 'q' \"d\"",
        "#(touch x) #{pid}",
        "żółw 🐢 \u2028 end",
        "x" * 300_000,
    ],
    ids=["dash", "option", "at", "nul", "escape", "newlines", "shell", "format", "unicode", "300kb"],
)
def test_stdin_is_exactly_the_task(engine: Engine, record: Path, task: str) -> None:
    """The agent reads exactly the task's bytes, and files keep them unchanged."""
    facts = given(engine, record, task=task)
    assert task.encode() == facts["stdin"].encode("latin-1")
    assert task.encode() == Path(facts["run_dir"], "prompt.md").read_bytes()
    assert task == engine.meta(facts["run_id"]).task


def test_environment(engine: Engine, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent has the launcher's environment, its own marks, and none of an outer run's."""
    strange = "quotes ' \" $(id) \n and = lines"
    monkeypatch.setenv("STRANGE", strange)
    monkeypatch.setenv("SUBDECK_RUN_ID", "an outer run")
    monkeypatch.setenv("PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR", "agent")
    facts = given(engine, record)
    added = {"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": facts["run_id"], "PWD": facts["cwd"]}
    expected = {**os.environ, **added}
    del expected["PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR"]
    assert expected == facts["environment"]


def test_working_directory(engine: Engine, record: Path, tmp_path: Path) -> None:
    """The agent works in the requested cwd, and its name is never interpreted."""
    cwd = tmp_path / "#(touch x) $(touch y) `touch z` -p"
    cwd.mkdir()
    facts = given(engine, record, cwd=str(cwd))
    assert str(cwd) == facts["cwd"]
    assert [] == os.listdir(cwd)


def test_relative_working_directory(engine: Engine, record: Path, project_dir: Path) -> None:
    """A relative cwd is relative to the launcher's."""
    (project_dir / "part").mkdir()
    assert str(project_dir / "part") == given(engine, record, cwd="part")["cwd"]


def test_nothing_is_inherited(engine: Engine, record: Path) -> None:
    """The agent has three descriptors (plus the one for counting them), and leads its own session."""
    facts = given(engine, record)
    assert ([0, 1, 2, 3], facts["pid"]) == (facts["descriptors"], facts["session"])


def test_a_directory_that_is_no_text(engine: Engine, tmp_path: Path) -> None:
    """A cwd that is not UTF-8 is refused with an error and leaves nothing behind."""
    from subdeck.core.errors import LaunchError

    cwd = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(cwd)
    with pytest.raises(LaunchError, match="not UTF-8"):
        engine.launch([RunRequest(task="note this", cwd=os.fsdecode(cwd))], background=False)
    assert [] == os.listdir(engine.project.runs)
    os.rmdir(cwd)


@pytest.mark.parametrize(
    "fault",
    ["subdeck.core.wrapper._attempt._widen", "subdeck.core.wrapper._attempt.RunStarted"],
    ids=["right after the start", "announcing it"],
)
def test_a_fault_after_the_start_leaves_no_child(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A run that fails after its agent has started, but before supervision, ends the agent."""
    code = f"""
import sys, subdeck.core.wrapper.__main__ as wrapper, pathlib, time
import {fault.rpartition(".")[0]} as module
def fail(*_, **__):
    while not pathlib.Path("{tmp_path}/pid").exists():
        time.sleep(0.01)
    raise RuntimeError("broken")
module.{fault.rpartition(".")[2]} = fail
wrapper.main(sys.argv[1:])
"""
    argv = property(lambda call: (sys.executable, "-P", "-E", "-c", code, *call.arguments))
    monkeypatch.setattr(WrapperCall, "argv", argv)
    engine = open_engine(
        project_dir, ("/bin/sh", "-c", f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 60")
    )
    (run,) = engine.launch([RunRequest(task="wait")], background=False)
    end = end_of(wait_for_end(engine, run.run_id))
    assert "broken" in end.message
    assert not lives(int((tmp_path / "pid").read_text()))
