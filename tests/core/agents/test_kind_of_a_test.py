"""A kind of agent outside of subdeck: its package and one row of the table are all that a new kind needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from subdeck.core.agent_kinds import KINDS
from subdeck.core.agents.installed import known_agents
from subdeck.core.agents.loader import recorded_kind
from subdeck.core.config.settings import Settings
from subdeck.core.launch.model_choices import model_choices

from tests.core import command_line
from tests.core.command_line import run_dirs, subdeck
from tests.house.support import pages

from .tiny import ROW

START = Path(__file__).parent / "tiny" / "start.py"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the row to the table of this process, and of the commands that the test runs."""
    monkeypatch.setitem(KINDS, ROW.name, ROW)
    monkeypatch.setattr(command_line, "SUBDECK", (sys.executable, "-P", str(START)))


pytestmark = pytest.mark.usefixtures("tiny")


@pytest.mark.processes
def test_a_run_of_it_succeeds(project_dir: Path) -> None:
    """The launch, the wrapper and the records handle it like every other kind."""
    words = ("--no-preset", "--agent", "tiny", "--model", "tiny/echo", "Hello there", "--json")
    done = subdeck("run", *words, cwd=project_dir)
    assert 0 == done.code, done.err
    assert ("completed", "done", "HELLO THERE") == tuple(
        done.document[key] for key in ("status", "reason", "finalText")
    )
    (run_dir,) = run_dirs(project_dir)
    meta = json.loads((run_dir / "meta.json").read_bytes())
    assert ("tiny", "tiny") == (meta["agent"], meta["agentKind"])
    assert "HELLO THERE" in subdeck("logs", run_dir.name, cwd=project_dir).out


@pytest.mark.processes
def test_doctor_reports_it(project_dir: Path) -> None:
    """It is one of the installed agents, with version and program."""
    done = subdeck("doctor", "--json", cwd=project_dir)
    (check,) = [check for check in done.document["checks"] if check["name"] == "tiny"]
    assert ("ok", True) == (check["state"], check["detail"].startswith("1.0 ("))


@pytest.mark.processes
def test_models_lists_its_model(project_dir: Path) -> None:
    """Its catalog is shown beside those of the other agents."""
    done = subdeck("models", "--json", cwd=project_dir)
    (agent,) = [agent for agent in done.document["agents"] if agent["agent"] == "tiny"]
    assert ("tiny", "1.0", ["tiny/echo"]) == (
        agent["kind"],
        agent["version"],
        [model["model"] for model in agent["models"]],
    )


@pytest.mark.processes
def test_the_help_names_it(project_dir: Path) -> None:
    """The agents that can be named are the rows of the table."""
    assert "offline, tiny" in " ".join(subdeck("run", "--help", cwd=project_dir).out.split())
    unknown = subdeck("run", "--no-preset", "--agent", "tinny", "Hello", cwd=project_dir)
    assert "did you mean tiny?" in unknown.err


def test_the_launch_dialog_offers_it() -> None:
    """It is one of the agents to choose, and its model one of the models."""
    known = {agent.name: agent for agent in known_agents(Settings())}
    assert ("1.0 · login unknown", True) == (known["tiny"].words, known["tiny"].is_here)
    assert ["tiny/echo"] == [choice.ref for choice in model_choices("tiny", Settings())]


def test_a_recording_of_it_is_recognized() -> None:
    """`subdeck replay` finds the kind by its first lines."""
    assert "tiny" == recorded_kind([b"say HELLO", b"done"])


def test_the_pages_about_agents_call_it_by_its_title() -> None:
    """A program that tests try is called by the title of its kind."""
    test = f"{Path(__file__).relative_to(Path(__file__).parents[3])}::test_a_run_of_it_succeeds"
    made = pages({"tiny 1.0": {test: ["passed", "2026-01-02"]}})
    assert "| [Tiny Agent 1.0](tiny-1.0.md) | 1 | 1 | 0 | 2026-01-02 |" in made["README.md"]
    assert "# Tiny Agent 1.0\n" in made["tiny-1.0.md"]
