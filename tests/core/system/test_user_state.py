"""The files that remember a user's choices: their place and permissions."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from subdeck.core.paths import project_key, state_file
from subdeck.core.system.files import write_state


def test_a_file_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state file is below XDG_STATE_HOME, written whole, in a private directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = Path(state_file("lists", "one.json"))
    assert tmp_path / "subdeck" / "lists" / "one.json" == path
    write_state(str(path), b"first")
    write_state(str(path), b"second")
    assert path.read_bytes() == b"second"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [path] == list(path.parent.iterdir())


def test_a_project_has_one_name(tmp_path: Path) -> None:
    """A link to a project has the project's name; another project has another name."""
    project, other, link = tmp_path / "shop", tmp_path / "other", tmp_path / "link"
    project.mkdir()
    other.mkdir()
    link.symlink_to(project)
    assert project_key(str(project)) == project_key(str(link))
    assert project_key(str(project)) != project_key(str(other))
