"""The lab of each test, with the kind of agent that the test names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .commands import Commands
from .kinds import Kind
from .lab import Lab


@pytest.fixture(scope="session")
def commands(session_leaves_nothing: None) -> Iterator[Commands]:
    """What runs all commands of the tests."""
    ready = Commands()
    yield ready
    ready.close()


@pytest.fixture
def lab(kind: Kind, project_dir: Path, home: Path, commands: Commands) -> Lab:
    return Lab(kind, project_dir, home, commands)
