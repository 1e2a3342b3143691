"""Fixtures of several modules; a module may override one by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.paths import Project
from subdeck.core.runners import process

from tests.commands import Commands
from tests.house.set_up import ACP_HOME
from tests.loaded import LoadedWrapper
from tests.real.lab import Lab, lab
from tests.real.programs import CLAUDE, CODEX, PI, Acp

from . import command_line


@pytest.fixture(scope="session")
def loaded_wrapper(session_leaves_nothing: None) -> Iterator[LoadedWrapper]:
    loaded = LoadedWrapper()
    yield loaded
    loaded.close()


@pytest.fixture
def forked_wrappers(loaded_wrapper: LoadedWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the wrappers of runs from a loaded process: starts are quicker.

    For modules that start many runs and don't test how a wrapper starts or what it loads.
    """
    monkeypatch.setattr(process, "_start_process", loaded_wrapper.start)


@pytest.fixture
def forked_commands(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the commands of `command_line.subdeck` from a process that has loaded all of them.

    For modules that run many commands and don't test their start, their imports or their parent process.
    """
    monkeypatch.setattr(command_line, "_run", commands.run)


@pytest.fixture
def project(project_dir: Path) -> Project:
    """A project with a directory for runs."""
    project = Project(str(project_dir))
    os.makedirs(project.runs)
    return project


SOON = {
    "relay.transfers.AGAIN_S": 0.05,
    "relay.relay.AGAIN_S": 0.05,
    "relay.relay.TICK_S": 0.02,
    "relay.relay._LEAST_PULL_S": 0.002,
    "relay.slots.WRITE_S": 0.02,
    "relay.connections.SETTINGS_S": 0.1,
    "_host_agent.PROOF_S": 0.1,
    "_spool.LOOK_S": 0.1,
    "ssh._line.FIRST_WAIT_S": 0.05,
    "ssh._line.LONGEST_WAIT_S": 0.2,
}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the check and retry periods of a relay and a host's agent in this process."""
    for period, seconds in SOON.items():
        monkeypatch.setattr(f"subdeck.core.hosts.{period}", seconds)


# --- real agents, each in a lab ---


@pytest.fixture
def pi(project_dir: Path, home: Path, pi_executable: str) -> Iterator[Lab]:
    with lab(PI, pi_executable, project_dir, home) as ready:
        yield ready


@pytest.fixture
def claude(project_dir: Path, home: Path, claude_executable: str) -> Iterator[Lab]:
    (project_dir / "notes.md").write_text("a note\n")
    with lab(CLAUDE, claude_executable, project_dir, home) as ready:
        yield ready


@pytest.fixture
def codex(project_dir: Path, home: Path, codex_executable: str) -> Iterator[Lab]:
    with lab(CODEX, codex_executable, project_dir, home) as ready:
        yield ready


@pytest.fixture(params=["claude", "codex"])
def acp(
    request: pytest.FixtureRequest, project_dir: Path, home: Path, claude_executable: str, codex_executable: str
) -> Iterator[Lab[Acp]]:
    """Claude Code and Codex, each behind its adapter to the Agent Client Protocol."""
    if not ACP_HOME.exists():
        pytest.skip("the agents of the Agent Client Protocol could not be installed here")
    behind = {"claude": (CLAUDE, claude_executable), "codex": (CODEX, codex_executable)}
    agent = Acp(*behind[request.param])
    with lab(agent, agent.adapter, project_dir, home) as ready:
        ready.preset()
        yield ready
