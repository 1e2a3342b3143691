"""Whose projects are used: the user's own, and those of others only if the user trusts them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from subdeck.core import doctor, paths, trust
from subdeck.core.config.settings import Settings
from subdeck.core.config.workspace import Workspace, load_settings
from subdeck.core.engine import Engine
from subdeck.core.errors import SettingsError, UsageError
from subdeck.core.presets.catalog import discover
from subdeck.core.wrapper.__main__ import _take_environment

from ..command_line import subdeck, write_preset

pytestmark = pytest.mark.usefixtures("forked_commands")

ANOTHER = 12345
"""A user id that does not exist."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def give_away(*files: Path) -> None:
    for path in files:
        os.chown(path, ANOTHER, -1, follow_symlinks=False)


def trust_in_settings(*directories: object) -> None:
    file = Path(paths.user_settings_file())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"trusted: [{', '.join(map(str, directories))}]\n")


@pytest.fixture
def kept(project_dir: Path) -> Path:
    """A project's `.pi/subagents` with all its directories."""
    home = project_dir / ".pi" / "subagents"
    for name in ("runs", "active", "sessions", "trash"):
        (home / name).mkdir(parents=True)
    return home


@pytest.mark.processes
@needs_root
@pytest.mark.parametrize("name", ["..", ".", "runs", "active", "sessions", "trash"])
def test_what_another_user_keeps_is_refused(project_dir: Path, kept: Path, name: str) -> None:
    """A subdeck directory owned by another user is refused with its path, its owner and the fix."""
    give_away(kept / name)
    with pytest.raises(UsageError, match=rf"it belongs to user id {ANOTHER}, not to you") as refused:
        Engine.open(str(project_dir))
    assert os.path.normpath(kept / name) == refused.value.where
    assert f"trusted: [{project_dir}]" in refused.value.hint
    assert paths.user_settings_file() in refused.value.hint
    assert 2 == subdeck("status", cwd=project_dir).code
    (check,) = [check for check in doctor.examine(str(project_dir)) if check.name == "project"]
    assert (doctor.State.PROBLEM, refused.value.hint) == (check.state, check.fix)


@pytest.mark.processes
@needs_root
def test_the_user_can_trust_a_directory(project_dir: Path, kept: Path) -> None:
    """The setting `trusted` accepts the project, a directory above it or all, but no other and no relative path."""
    give_away(kept)
    for directory in (project_dir / "sub", f"{project_dir}-beside", ".", f"{project_dir}/.pi"):
        trust_in_settings(directory)
        with pytest.raises(UsageError, match="belongs to"):
            Engine.open(str(project_dir))
    for directory in (project_dir, f"{project_dir.parent}/", "/", '"*"'):
        trust_in_settings(directory)
        assert str(project_dir) == Engine.open(str(project_dir)).project.root


@pytest.mark.processes
@needs_root
@pytest.mark.parametrize("name", ["{root}", "*", "{above}/*"])
def test_what_git_takes_is_taken(project_dir: Path, kept: Path, name: str) -> None:
    """A directory that is safe for git is trusted, and one removed from git's list is not."""
    give_away(project_dir / ".git", kept)
    git = ("git", "config", "--global", "--add", "safe.directory")
    subprocess.run([*git, name.format(root=project_dir, above=project_dir.parent)], check=True)
    assert str(project_dir) == Engine.open(str(project_dir)).project.root
    subprocess.run([*git, ""], check=True)
    with pytest.raises(UsageError, match="belongs to"):
        Engine.open(str(project_dir))


@pytest.mark.processes
@needs_root
def test_root_by_sudo_is_the_user(project_dir: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sudo, root uses the original user's projects."""
    give_away(project_dir / ".git", kept)
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    assert str(project_dir) == Engine.open(str(project_dir / ".git")).project.root
    monkeypatch.setenv("SUDO_UID", "54321")
    with pytest.raises(UsageError, match="belongs to"):
        Engine.open(str(project_dir))


@pytest.mark.processes
@pytest.mark.parametrize("others", [False, pytest.param(True, marks=needs_root)], ids=["own", "another user's"])
def test_no_other_user_means_no_question(
    project_dir: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    """In the user's own project, neither the settings nor git are asked about trust. In another user's, both are."""
    git, asked = tmp_path / "bin" / "git", tmp_path / "asked"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\necho >>{asked}\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent), prepend=os.pathsep)
    if others:
        give_away(kept)
    project = paths.Project(str(project_dir))
    assert others == (trust.fault_of(project) is not None) == asked.exists()
    trust_in_settings("[")
    assert others == isinstance(trust.fault_of(project), SettingsError)


def test_a_project_cannot_trust_itself(project_dir: Path, kept: Path) -> None:
    """Only the user's own settings decide whom to trust."""
    (kept / "config.yaml").write_text(f"trusted: [{project_dir}]\n")
    with pytest.raises(SettingsError, match='"trusted" cannot be set by a project'):
        load_settings(paths.Project(str(project_dir)))


@pytest.mark.processes
@needs_root
@pytest.mark.parametrize("foreign", [".git", ".pi"])
def test_another_users_directory_above_makes_no_project(tmp_path: Path, foreign: str) -> None:
    """Another user's `.git` or `.pi` in a parent directory is not used, and ends the search."""
    mine = tmp_path / "mine"
    below = mine / "theirs" / "here"
    (below.parent / ".pi" / "subagents").mkdir(parents=True)
    below.mkdir()
    (mine / ".git").mkdir()
    (mine / ".git" / "HEAD").touch()
    assert str(mine) == paths.find_project(str(below)).root
    if foreign == ".git":
        shutil.copytree(mine / ".git", below.parent / ".git")
        shutil.rmtree(below.parent / ".pi")
    else:
        shutil.rmtree(mine / ".git")
        (mine / ".pi/subagents").mkdir(parents=True)
    give_away(below.parent / foreign)
    assert str(below) == trust.find_project(str(below)).root
    trust_in_settings(below.parent)
    assert str(below.parent) == trust.find_project(str(below)).root


@pytest.mark.parametrize("content", ["nothing", "file", "pipe", "dangling"])
def test_what_git_would_not_take_is_no_root(tmp_path: Path, content: str) -> None:
    """An empty `.git`, or one that is not a repository, makes no project, and neither do directories above it."""
    (tmp_path / "above" / ".git").mkdir(parents=True)
    (tmp_path / "above" / ".git" / "HEAD").touch()
    project = tmp_path / "above" / "project"
    here = project / "src"
    here.mkdir(parents=True)
    git = project / ".git"
    match content:
        case "nothing":
            git.mkdir()
        case "file":
            git.write_text("something else\n")
        case "pipe":
            os.mkfifo(git)
        case _:
            git.symlink_to("nowhere")
    assert str(here) == paths.find_project(str(here)).root
    (project / ".pi" / "subagents").mkdir(parents=True)
    assert str(project) == paths.find_project(str(here)).root


def test_a_worktree_is_a_root(tmp_path: Path) -> None:
    """A `.git` file makes a root, as in a worktree or submodule."""
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").write_text("gitdir: /somewhere/.git/worktrees/one\n")
    assert str(tmp_path) == paths.find_project(str(tmp_path / "src")).root


@pytest.mark.processes
@needs_root
def test_presets_of_another_user_are_not_taken(project_dir: Path, tmp_path: Path) -> None:
    """Another user's presets above the project are ignored."""
    path = write_preset(tmp_path)
    workspace = Workspace(paths.Project(str(project_dir)), str(project_dir), Settings())
    assert ("scout",) == tuple(preset.name for preset in discover(workspace).presets)
    give_away(path.parent)
    assert () == discover(workspace).presets


@pytest.mark.processes
@pytest.mark.parametrize("name", [".pi", ".pi/subagents", ".pi/subagents/runs"])
def test_a_place_that_leads_out_is_named(project_dir: Path, tmp_path: Path, name: str) -> None:
    """If subdeck's directory is a link to elsewhere, every command reports it with the fix."""
    (tmp_path / "elsewhere" / "subagents").mkdir(parents=True)
    (project_dir / name).parent.mkdir(parents=True, exist_ok=True)
    (project_dir / name).symlink_to(tmp_path / "elsewhere")
    done = subdeck("status", cwd=project_dir)
    assert 2 == done.code
    assert "is a symbolic link" in done.err
    assert str(project_dir / name) in done.err
    assert [check for check in doctor.examine(str(project_dir)) if "is a symbolic link" in check.detail]


@pytest.mark.parametrize(
    ("mode", "is_given_away", "is_taken"),
    [
        (0o600, False, True),
        (0o666, False, False),
        pytest.param(0o600, True, False, marks=needs_root),
    ],
)
def test_an_environment_of_another_user_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_given_away: bool, is_taken: bool
) -> None:
    """A wrapper ignores and removes an environment file that another user owns or can change."""
    file = tmp_path / paths.ENVIRONMENT
    file.write_bytes(b"PATH=/planted\0LD_PRELOAD=/planted.so\0")
    file.chmod(mode)
    if is_given_away:
        give_away(file)
    monkeypatch.setattr(os, "environ", {"PATH": "/bin"})
    _take_environment(str(tmp_path))
    planted = {"PATH": "/planted", "LD_PRELOAD": "/planted.so"}
    assert (planted if is_taken else {"PATH": "/bin"}) == os.environ
    assert not file.exists()
