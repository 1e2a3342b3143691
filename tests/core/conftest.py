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


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed in a relay is tried again at once."""
    for module in ("errands", "relay"):
        monkeypatch.setattr(f"subdeck.core.hosts.relay.{module}.AGAIN_S", 0.05)
