"""The lab of each test, with the kind of agent that the test names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import Commands

from .kinds import Kind
from .lab import Lab


@pytest.fixture
def lab(kind: Kind, project_dir: Path, home: Path, commands: Commands) -> Lab:
    return Lab(kind, project_dir, home, commands)
