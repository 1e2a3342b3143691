"""Fixtures of several modules; one with a fixture of the same name has its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.paths import Project


@pytest.fixture
def project(project_dir: Path) -> Project:
    """A project with a directory for runs, as whoever works for runs finds it."""
    project = Project(str(project_dir))
    os.makedirs(project.runs)
    return project


SOON = {
    "relay.errands.AGAIN_S": 0.05,
    "relay.relay.AGAIN_S": 0.05,
    "relay.relay.LOOK_S": 0.02,
    "relay.relay._LEAST_PULL_S": 0.002,
    "relay.roster.WRITE_S": 0.02,
    "relay.connections.SETTINGS_S": 0.1,
    "host_agent.PROOF_S": 0.1,
}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay and a host's agent in this process look at once again, and try again at once what failed."""
    for period, seconds in SOON.items():
        monkeypatch.setattr(f"subdeck.core.hosts.{period}", seconds)
