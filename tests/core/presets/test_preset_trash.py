"""A deleted preset's file moves to the trash, and is restored byte for byte."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.errors import PresetError
from subdeck.core.paths import Project
from subdeck.core.presets.catalog import next_after
from subdeck.core.presets.trash import KEPT, delete_preset, restore_preset
from subdeck.core.run.model import PresetSource

CONTENT = b"\xef\xbb\xbf---\r\nname: \xff broken\x00\n"


@pytest.fixture
def project(project_dir: Path) -> Project:
    found = Project(str(project_dir))
    os.makedirs(found.home)
    return found


def a_file(directory: str, name: str = "scout.md", content: bytes = CONTENT) -> Path:
    os.makedirs(directory, exist_ok=True)
    path = Path(directory, name)
    path.write_bytes(content)
    path.chmod(0o640)
    return path


@pytest.mark.parametrize("name", ["scout.md", "--help; touch x.md", f"{'n' * 252}.md", "名🦊\n.md"])
def test_it_comes_back_as_it_was(project: Project, name: str) -> None:
    """Bytes and mode are restored for any content and name; the trash is then empty."""
    path = a_file(project.home, name)

    deleted = delete_preset(str(path), PresetSource.PROJECT, project)
    assert not path.exists()
    assert (CONTENT, 0o700) == (Path(deleted.kept).read_bytes(), os.stat(os.path.dirname(deleted.kept)).st_mode & 0o777)
    assert deleted.kept.startswith(project.trash)

    restore_preset(deleted)
    assert (CONTENT, 0o640) == (path.read_bytes(), path.stat().st_mode & 0o777)
    assert [".gitignore"] == os.listdir(project.trash)


def test_the_trash_is_beside(project: Project, tmp_path: Path) -> None:
    """A user's preset goes to the user's trash; one of another directory goes to the project's."""
    user = a_file(str(tmp_path / "agent/subagents"))
    foreign = a_file(str(tmp_path / "foreign"))

    assert delete_preset(str(user), PresetSource.GLOBAL, project).kept.startswith(f"{tmp_path}/agent/subagents/trash/")
    assert delete_preset(str(foreign), PresetSource.DIR, project).kept.startswith(project.trash)
    assert [] == os.listdir(tmp_path / "foreign")


def test_git_sees_nothing_of_it(project: Project) -> None:
    """Deleted presets are not committed by accident."""
    delete_preset(str(a_file(project.home)), PresetSource.PROJECT, project)

    assert "*\n" == Path(project.trash, ".gitignore").read_text()


def test_a_link_is_deleted_and_not_what_it_leads_to(project: Project) -> None:
    """A link is deleted without its target, and a relative link is restored as it was."""
    real = a_file(f"{project.root}/elsewhere")
    link = Path(project.home, "link.md")
    link.symlink_to("../../elsewhere/scout.md")

    deleted = delete_preset(str(link), PresetSource.PROJECT, project)
    assert real.exists()
    restore_preset(deleted)
    assert ("../../elsewhere/scout.md", CONTENT) == (os.readlink(link), link.read_bytes())


def test_another_file_is_not_replaced(project: Project) -> None:
    """If a new file has the name by now, the deleted one stays in the trash, with its path in the error."""
    path = a_file(project.home)
    deleted = delete_preset(str(path), PresetSource.PROJECT, project)
    path.write_bytes(b"new")

    with pytest.raises(PresetError, match="another file has this name") as refused:
        restore_preset(deleted)
    assert deleted.kept in refused.value.hint
    assert (b"new", CONTENT) == (path.read_bytes(), Path(deleted.kept).read_bytes())


def test_it_crosses_file_systems(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset on another disk is copied, there and back."""

    def crossing(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    path = a_file(str(tmp_path / "foreign"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", crossing)
        deleted = delete_preset(str(path), PresetSource.DIR, project)
    assert (False, CONTENT) == (path.exists(), Path(deleted.kept).read_bytes())
    link = os.link

    def near(source: str, target: str, **options: Any) -> None:
        if options["src_dir_fd"] is not None:
            crossing()
        link(source, target, **options)

    monkeypatch.setattr(os, "link", near)
    restore_preset(deleted)
    assert (CONTENT, 0o640) == (path.read_bytes(), path.stat().st_mode & 0o777)
    assert ["scout.md"] == os.listdir(path.parent)


@pytest.mark.parametrize("name", ["gone.md", "directory.md", "notes.txt"])
def test_what_is_no_preset_file_is_refused(project: Project, name: str) -> None:
    """A missing file, a directory and a file of another kind are refused and stay."""
    if name == "directory.md":
        os.mkdir(f"{project.home}/{name}")
    elif name == "notes.txt":
        a_file(project.home, name)
    before = sorted(os.listdir(project.home))

    with pytest.raises(PresetError):
        delete_preset(f"{project.home}/{name}", PresetSource.PROJECT, project)
    assert before == sorted(set(os.listdir(project.home)) - {"trash"})
    assert {".gitignore"} >= (set(os.listdir(project.trash)) if os.path.isdir(project.trash) else set())


def test_bundled_presets_stay(project: Project) -> None:
    """Bundled presets are turned off by the setting, never deleted."""
    with pytest.raises(PresetError, match="comes with subdeck") as refused:
        delete_preset("/lib/Explore.md", PresetSource.BUNDLED, project)
    assert "bundled_presets: false" in refused.value.hint


def test_old_ones_go_at_last(project: Project) -> None:
    """Presets in the trash are removed after a month at the next deletion; runs there stay."""
    old = delete_preset(str(a_file(project.home)), PresetSource.PROJECT, project)
    place = os.path.dirname(old.kept)
    past = os.stat(place).st_mtime - KEPT - 60
    os.utime(place, (past, past))
    os.mkdir(f"{project.trash}/20200101-000000-abcdef")
    os.utime(f"{project.trash}/20200101-000000-abcdef", (past, past))

    young = delete_preset(str(a_file(project.home)), PresetSource.PROJECT, project)

    assert (False, True) == (os.path.exists(old.kept), os.path.exists(young.kept))
    assert os.path.exists(f"{project.trash}/20200101-000000-abcdef")


def test_what_comes_forth_is_known(project: Project) -> None:
    """After a deletion the next usable file of the name is found, in the order of preset sources."""
    good = b"---\nname: scout\ndescription: d\n---\n"
    user = f"{os.environ['PI_CODING_AGENT_DIR']}/subagents"
    near, broken, far = a_file(project.home, content=good), a_file(user, "a.md", b"---\nname: scout\n---\n"), None
    workspace = Workspace(project, project.root, Settings())
    assert next_after(str(near), "scout", workspace) is None

    far = a_file(user, "b.md", good)
    found = next_after(str(near), "scout", workspace)
    assert found is not None
    assert (PresetSource.GLOBAL, str(far)) == (found.source, found.path)
    assert next_after(str(far), "scout", workspace) is not None
    assert broken.exists()
