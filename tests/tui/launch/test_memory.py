"""Remembered launch values: small, private, never blocking."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from subdeck.core.paths import Project
from subdeck.tui.launch import _memory as launch_memory
from subdeck.tui.launch._memory import LastValues, LaunchMemory, change_memory, memory_file, read_memory

CHOSEN = LastValues(model="b/c", cwd="/tmp", runner="tmux", copies=3)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(str(tmp_path))


def test_values_are_kept_by_preset_and_project(project: Project, tmp_path: Path) -> None:
    """Values are remembered for each preset of a project, and not shared with another project."""
    change_memory(project, lambda memory: memory.after_launch("scout", "t", CHOSEN))
    assert CHOSEN == read_memory(project).values_of("scout")
    assert LastValues() == read_memory(project).values_of("reviewer")
    assert LaunchMemory() == read_memory(Project(str(tmp_path / "other")))


def test_the_file_is_private(project: Project) -> None:
    """The file with remembered tasks is private."""
    change_memory(project, lambda memory: memory.after_cancel("scout", "secret"))
    file = Path(memory_file(project))
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    assert [file] == list(file.parent.iterdir())


@pytest.mark.parametrize("content", [b"", b"{broken", b'{"last": 5}', b"\xff\xfe", b'{"last": {"a": {"copies": "x"}}}'])
def test_a_broken_file_is_an_empty_one(project: Project, content: bytes) -> None:
    """A broken file counts as empty, and the next change replaces it."""
    change_memory(project, lambda memory: memory)
    Path(memory_file(project)).write_bytes(content)
    assert LaunchMemory() == read_memory(project)
    change_memory(project, lambda memory: memory.after_launch("scout", "t", CHOSEN))
    assert CHOSEN == read_memory(project).values_of("scout")


def test_what_is_usual_is_not_kept() -> None:
    """A launch with the preset's own values forgets the chosen ones; a launch without values keeps them."""
    memory = LaunchMemory().after_launch("scout", "t", CHOSEN)
    assert CHOSEN == memory.after_launch("scout", "t", None).values_of("scout")
    assert {} == memory.after_launch("scout", "t", LastValues()).last


def test_presets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values used last are kept."""
    monkeypatch.setattr(launch_memory, "PRESETS", 2)
    memory = LaunchMemory()
    for name in ("a", "b", "a", "c"):
        memory = memory.after_launch(name, "t", CHOSEN)
    assert ["a", "c"] == list(memory.last)


def test_a_draft_is_offered_until_it_is_launched_or_cleared() -> None:
    """A draft is offered again for its preset; afterwards it is an unsent task unless it was launched."""
    memory = LaunchMemory().after_cancel("scout", "find it").after_cancel("", "other")
    assert ("find it", "other", "") == tuple(memory.draft_of(name) for name in ("scout", "", "reviewer"))
    assert "" == memory.after_cancel("scout", " ").draft_of("scout")
    replaced = memory.after_launch("scout", "something else", None)
    assert ("", ["other", "find it"]) == (replaced.draft_of("scout"), [unsent.task for unsent in replaced.unsent])
    assert ["other"] == [unsent.task for unsent in memory.after_launch("scout", "find it", None).unsent]


def test_a_second_draft_takes_the_place_of_the_first() -> None:
    """One draft is offered at most, and the earlier one is not lost."""
    memory = LaunchMemory().after_cancel("scout", "one").after_cancel("scout", "two").after_cancel("scout", "two")
    assert "two" == memory.draft_of("scout")
    assert [("two", True), ("one", False)] == [(unsent.task, unsent.offered) for unsent in memory.unsent]


def test_unsent_tasks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsent tasks are limited by number and size; the newest one is always kept."""
    monkeypatch.setattr(launch_memory, "UNSENT", 3)
    monkeypatch.setattr(launch_memory, "CHARACTERS", 10)
    memory = LaunchMemory()
    for number in range(5):
        memory = memory.after_cancel("scout", str(number))
    assert ["4", "3", "2"] == [unsent.task for unsent in memory.unsent]
    assert ["long" * 5] == [unsent.task for unsent in memory.after_cancel("scout", "long" * 5).unsent]


def test_a_change_starts_from_the_file(project: Project) -> None:
    """Two apps on one project keep each other's tasks."""
    change_memory(project, lambda memory: memory.after_cancel("scout", "of one app"))
    change_memory(project, lambda memory: memory.after_cancel("reviewer", "of the other"))
    assert ["of the other", "of one app"] == [unsent.task for unsent in read_memory(project).unsent]


def test_what_cannot_be_written_is_said(project: Project) -> None:
    """If the state directory is a file, the caller gets an error."""
    state = Path(memory_file(project)).parent.parent
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text("")
    with pytest.raises(NotADirectoryError):
        change_memory(project, lambda memory: memory)
