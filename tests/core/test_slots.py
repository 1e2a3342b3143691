"""The lock files of queues go when their queue is over."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from subdeck.core.launch.start import OLD_GROUP_S, remove_old_slots
from subdeck.core.paths import Project


@pytest.fixture
def group(project_dir: Path) -> Path:
    """The lock files of a group, made long ago."""
    directory = Path(Project(str(project_dir)).slots) / "20261101-000000-000000"
    directory.mkdir(parents=True)
    for name in ("door", "0", "1"):
        (directory / name).touch()
    long_ago = directory.stat().st_mtime - OLD_GROUP_S - 1
    os.utime(directory, (long_ago, long_ago))
    return directory


def test_a_group_that_is_over(group: Path, project_dir: Path) -> None:
    """Lock files that nobody holds any more are removed."""
    remove_old_slots(Project(str(project_dir)))
    assert not group.exists()


@pytest.mark.parametrize("name", ["door", "1"])
def test_a_group_that_goes_on(group: Path, project_dir: Path, name: str) -> None:
    """A slot or a door that is held keeps all lock files of its group."""
    with (group / name).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        remove_old_slots(Project(str(project_dir)))
        assert ["0", "1", "door"] == sorted(os.listdir(group))


def test_a_young_group(group: Path, project_dir: Path) -> None:
    """A group whose wrappers may still be on their way keeps its lock files."""
    os.utime(group)
    remove_old_slots(Project(str(project_dir)))
    assert group.exists()


def test_the_slots_of_the_project(group: Path, project_dir: Path) -> None:
    """The project's own slots are never removed: a wrapper may be about to open them."""
    own = group.rename(group.parent / "project")
    remove_old_slots(Project(str(project_dir)))
    assert own.exists()
