"""A model that its agent doesn't have is refused or passed on with a warning, by one rule for all launchers."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core.agents import choice as agent_choice
from subdeck.core.agents.choice import choose_agent, model_list
from subdeck.core.agents.pi._models import cache_file
from subdeck.core.delegation.call import call_tool
from subdeck.core.delegation.parent import Parent
from subdeck.core.engine import Engine
from subdeck.core.errors import ModelError, SubdeckError
from subdeck.core.launch.model import ResolvedModel
from subdeck.core.launch.plan import plan_all
from subdeck.core.models.catalog import Model
from subdeck.core.paths import agent_dir
from subdeck.core.run.model import LauncherKind, RunnerKind
from subdeck.core.spec.request import RunRequest

from tests.core.command_line import subdeck
from tests.core.conversing import write_preset
from tests.factories import PUPPET, write_settings

TABLE = "provider  model  context  max-out  thinking  images\n{}"


class FakePi:
    """A pi that lists the models of a file and counts its listings, and is otherwise the puppet. It first runs the
    script in `trouble`.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._table, self._asked, self.trouble = (directory / name for name in ("table", "asked", "trouble"))
        self.trouble.write_text("")
        self.path = directory / "pi"
        self.path.write_text(
            f'#!/bin/sh\ncase "$*" in *--list-models*) echo x >> {self._asked}; . {self.trouble}; cat {self._table};; '
            f'*) exec {shlex.join(PUPPET)} "$@";; esac\n'
        )
        self.path.chmod(0o755)

    def has(self, *models: str) -> None:
        rows = [f"{model.replace('/', '  ')}  128K  16.4K  no  no" for model in models]
        self._table.write_text(TABLE.format("\n".join(rows)) + "\n")

    @property
    def asked(self) -> int:
        return len(self._asked.read_text().splitlines()) if self._asked.exists() else 0


@pytest.fixture
def pi(tmp_path: Path) -> FakePi:
    return FakePi(tmp_path / "bin")


@pytest.fixture
def engine(pi: FakePi, project_dir: Path) -> Engine:
    """A project whose agent listed its models an hour ago, with nothing changed since."""
    pi.has("fake/test", "fake/other")
    write_settings(agents={"pi": {"command": [str(pi.path)]}}, agent="pi", default_model="fake/test", talk=False)
    engine = Engine.open(str(project_dir))
    agent = choose_agent("pi", engine.settings)
    known = model_list(agent)
    assert known
    known.keep([Model("fake", "test", "pi"), Model("fake", "other", "pi")], known.key)
    file = Path(cache_file(agent.command))
    file.write_bytes(msgspec.json.encode(replace(known.kept(), asked_at=time.time() - 3600)))
    return engine


Launch = Callable[[Engine], dict[str, Any]]
"""Launches the preset `fixed` and returns the error."""


def by_command_line(engine: Engine) -> dict[str, Any]:
    done = subdeck("bg", "fixed", "answer ok", "--json", cwd=Path(engine.project.root))
    assert 2 == done.code
    return done.error


def by_app(engine: Engine) -> dict[str, Any]:
    with pytest.raises(SubdeckError) as caught:
        engine.launch((RunRequest(task="answer ok", preset="fixed"),), background=True)
    return {name: getattr(caught.value, name) for name in ("what", "where", "hint")}


def by_parent(kind: LauncherKind, models: tuple[str, ...] | None) -> Launch:
    def launch(engine: Engine) -> dict[str, Any]:
        parent = Parent("s", kind, models=models)
        params = {"preset": "fixed", "task": "answer ok"}
        return call_tool(engine, "background_agent", params, parent=parent).structured["error"]

    return launch


@pytest.mark.processes
@pytest.mark.parametrize(
    ("launch", "source"),
    [
        (by_command_line, "the list from pi --list-models"),
        (by_app, "the list from pi --list-models"),
        (by_parent(LauncherKind.MCP, None), "the list from pi --list-models"),
        (by_parent(LauncherKind.PI, ("fake/test",)), "the list of models of this pi session"),
    ],
    ids=["command line", "app", "mcp", "pi"],
)
def test_whoever_launches(engine: Engine, pi: FakePi, project_dir: Path, launch: Launch, source: str) -> None:
    """A model missing from a complete list is refused, after asking the agent once more. The error names the list,
    similar models, and the file with the model.
    """
    path = write_preset(project_dir, "model: fake/tset", name="fixed")
    for _ in range(2):
        error = launch(engine)
        assert f'the model "fake/tset" is not available: not in {source}' in error["what"]
        assert error["hint"].startswith("did you mean fake/test")
        assert str(path) == error["where"]
    assert 1 == pi.asked
    assert () == engine.snapshots()


def resolved(engine: Engine, model: str) -> ResolvedModel:
    """Resolve the model of a launch."""
    engine.read_settings()
    (plan,) = plan_all((RunRequest(task="x", model=model),), engine.workspace, asks=True)
    return plan.model


@pytest.mark.processes
def test_a_model_that_the_agent_has_by_now(engine: Engine, pi: FakePi) -> None:
    """A model missing from the cached list is searched in a fresh one before it is refused. A known one
    costs nothing.
    """
    assert "fake/other" == resolved(engine, "FAKE/Other").resolved
    assert 0 == pi.asked
    pi.has("fake/test", "fake/new")
    assert "fake/new" == resolved(engine, "new").resolved
    assert 1 == pi.asked


def test_a_check_starts_no_agent(engine: Engine, pi: FakePi) -> None:
    """The dialog checks models without starting a program."""
    (problem,) = engine.check(RunRequest(task="x", model="fake/nope"))
    assert isinstance(problem, ModelError)
    assert 0 == pi.asked


@pytest.mark.processes
def test_an_agent_that_takes_too_long(engine: Engine, pi: FakePi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets ten seconds, and its earlier list still counts."""
    assert 10.0 == agent_choice.UNKNOWN_TIMEOUT_S
    monkeypatch.setattr(agent_choice, "UNKNOWN_TIMEOUT_S", 0.2)
    pi.trouble.write_text("exec sleep 60")
    (problem,) = engine.check(RunRequest(task="x", model="fake/tset"), asks=True)
    assert "did you mean fake/test" in problem.hint


@pytest.mark.processes
def test_a_list_that_is_out_of_date(engine: Engine, pi: FakePi, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the agent cannot update an outdated list, the model is passed on with a warning."""
    monkeypatch.setenv("NEW_API_KEY", "sk-fake")
    pi.trouble.write_text("exit 1")
    for _ in range(2):
        (warning,) = resolved(engine, "fake/tset").notices
        assert warning.startswith(
            "fake/tset is not in the list from pi --list-models: the agent may refuse it, or use a"
        )
        assert "did you mean fake/test" in warning
    assert 1 == pi.asked


@pytest.mark.processes
def test_an_agent_that_writes_files_and_fails(engine: Engine, pi: FakePi) -> None:
    """It is asked once for all tasks of a call, even if it changes a file on which its list depends."""
    own = Path(agent_dir())
    own.mkdir(parents=True, exist_ok=True)
    pi.trouble.write_text(f"echo x >> {own / 'auth.json'}; exit 1")
    write_preset(Path(engine.project.root))
    tasks = [{"preset": "scout", "task": "answer ok", "model": f"nope{number}"} for number in range(3)]
    answer = call_tool(engine, "subagent", {"tasks": tasks}, parent=Parent("s", LauncherKind.MCP))
    assert 3 == len(answer.structured["errors"])
    assert 1 == pi.asked


def test_a_model_of_the_settings(engine: Engine, project_dir: Path, pi: FakePi) -> None:
    """A model in the settings is used, even if the agent doesn't list it."""
    write_settings(
        agents={"pi": {"command": [str(pi.path)]}}, agent="pi", default_model="fake/test", models=["mine/own"]
    )
    assert "mine/own" == resolved(engine, "mine/own").resolved
    assert 0 == pi.asked


def test_a_run_on_another_machine(engine: Engine, pi: FakePi) -> None:
    """The agent there may have the model, so the local agent is not asked and the run is not refused."""
    problems = engine.check(RunRequest(task="x", model="fake/tset", runner=RunnerKind.HOSTS), asks=True)
    assert not [problem for problem in problems if isinstance(problem, ModelError)]
    assert 0 == pi.asked


@pytest.fixture
def claude(tmp_path: Path) -> list[str]:
    """A Claude Code that ends at once. Its list has `opus`, short for a dated model."""
    return [sys.executable, "-c", "pass"]


def told_claude(engine: Engine) -> None:
    known = model_list(choose_agent("claude", engine.settings))
    assert known
    known.keep([Model("anthropic", "opus", "claude", stands_for="claude-opus-5-5-20260401")], known.key)


def test_a_list_that_is_not_complete(engine: Engine, claude: list[str], pi: FakePi) -> None:
    """An agent with an incomplete list gets other models with a warning. The full name of a listed model has no
    warning.
    """
    write_settings(agents={"claude": {"command": claude}}, agent="claude", default_model=None)
    engine.read_settings()
    told_claude(engine)
    for model in ("opus", "anthropic/claude-opus-5-5", "claude-opus-5-5-20260401", "haiku"):
        assert () == resolved(engine, model).notices, model
    (warning,) = resolved(engine, "anthropic/claude-opsu").notices
    assert warning.startswith("anthropic/claude-opsu is not in the list of models of claude: the agent may refuse it")


@pytest.mark.processes
@pytest.mark.parametrize("agent", ["auto", "claude"])
def test_a_model_of_another_agent(
    engine: Engine, claude: list[str], pi: FakePi, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    """A pi session may name a model of another installed agent, which then runs it. The tools do not list it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-fake")
    agents = {"pi": {"command": [str(pi.path)]}, "claude": {"command": claude}}
    write_settings(agents=agents, agent=agent, default_model=None)
    engine.read_settings()
    told_claude(engine)
    write_preset(Path(engine.project.root), name="scout")
    parent = Parent("s", LauncherKind.PI, models=("fake/test",))
    params = {"preset": "scout", "task": "answer ok", "model": "anthropic/opus"}
    answer = call_tool(engine, "background_agent", params, parent=parent)
    (run,) = engine.wait((answer.structured["runId"],))
    assert ("claude", "anthropic/opus") == (run.meta.agent, run.meta.resolved_model)
