"""A queue's lock files are removed when the queue is over."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest
from subdeck.core.launch.start import OLD_GROUP_S, remove_old_slots
from subdeck.core.paths import Project
from subdeck.core.project.trash import UNBORN_S, remove_unborn
from subdeck.core.work import deletion

from tests.factories import make_run

from ..command_line import subdeck

pytestmark = pytest.mark.usefixtures("forked_commands")


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
    """Lock files that no process holds any more are removed."""
    remove_old_slots(Project(str(project_dir)))
    assert not group.exists()


@pytest.mark.parametrize("name", ["door", "1"])
def test_a_group_that_goes_on(group: Path, project_dir: Path, name: str) -> None:
    """A held slot or door keeps all lock files of its group."""
    with (group / name).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        remove_old_slots(Project(str(project_dir)))
        assert ["0", "1", "door"] == sorted(os.listdir(group))


def test_a_young_group(group: Path, project_dir: Path) -> None:
    """A group whose wrappers may still be starting keeps its lock files."""
    os.utime(group)
    remove_old_slots(Project(str(project_dir)))
    assert group.exists()


def test_the_slots_of_the_project(group: Path, project_dir: Path) -> None:
    """The project's own slots are never removed: a wrapper may be about to open them."""
    own = group.rename(group.parent / "project")
    remove_old_slots(Project(str(project_dir)))
    assert own.exists()


@pytest.mark.parametrize(
    ("age", "held", "left"), [(UNBORN_S + 60, False, False), (UNBORN_S + 60, True, True), (60, False, True)]
)
def test_what_a_killed_launcher_left(project_dir: Path, age: float, held: bool, left: bool) -> None:
    """The hidden directory of a half-made run is removed after a day, unless its launcher still holds it."""
    project = Project(str(project_dir))
    meta, lock = make_run(project)
    hidden = Path(project.runs, f".{meta.run_id}")
    os.rename(project.run_dir(meta.run_id), hidden)
    (other, its_lock), foreign = make_run(project), Path(project.runs, ".not-a-run")
    foreign.mkdir()
    for directory in (hidden, Path(project.run_dir(other.run_id)), foreign):
        long_ago = time.time() - age
        os.utime(directory, (long_ago, long_ago))
    os.close(its_lock)
    if not held:
        os.close(lock)
    remove_unborn(project)
    assert (left, True, True) == (hidden.exists(), Path(project.run_dir(other.run_id)).exists(), foreign.exists())
    if held:
        os.close(lock)


@pytest.mark.processes
def test_a_clean_up_for_good_leaves_none(project_dir: Path) -> None:
    """`clean --purge` removes half-made runs of killed launchers with their prompts, but none that is held."""
    project = Project(str(project_dir))
    hidden: list[Path] = []
    locks: list[int] = []
    for _ in range(2):
        meta, lock = make_run(project)
        hidden.append(Path(project.runs, f".{meta.run_id}"))
        locks.append(lock)
        os.rename(project.run_dir(meta.run_id), hidden[-1])
        os.utime(hidden[-1], (time.time() - 3 * UNBORN_S,) * 2)
    os.close(locks.pop())
    assert "" == subdeck("rm", "--keep", "0", "--yes", "--dry-run", "--purge", cwd=project_dir).err
    assert [True, True] == [directory.exists() for directory in hidden]
    done = subdeck("rm", "--keep", "0", "--yes", "--purge", cwd=project_dir)
    assert (0, "removed 1 run left incomplete by a killed launcher") == (done.code, done.out.splitlines()[-1])
    assert [True, False] == [directory.exists() for directory in hidden]
    os.close(locks.pop())


def test_the_app_removes_old_ones(project_dir: Path) -> None:
    """Purging old runs also removes half-made ones, without a launch."""
    project = Project(str(project_dir))
    meta, lock = make_run(project)
    os.close(lock)
    hidden = Path(project.runs, f".{meta.run_id}")
    os.rename(project.run_dir(meta.run_id), hidden)
    os.utime(hidden, (time.time() - UNBORN_S - 60,) * 2)
    deletion.purge_old(project)
    assert not hidden.exists()
