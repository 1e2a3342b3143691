"""The small files by which git finds a repository: a checkout may write anything into them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.permissions.path_patterns import same_in_others
from subdeck.core.system.git_pointers import directories_of, read_pointer

from .repositories import git, make

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("kind", ["missing", "a directory", "a pipe", "endless", "with a null", "not UTF-8"])
def test_what_names_no_place_is_empty(tmp_path: Path, kind: str) -> None:
    """No file is opened that could block or fill the memory."""
    path = tmp_path / "commondir"
    match kind:
        case "a directory":
            path.mkdir()
        case "a pipe":
            os.mkfifo(path)
        case "endless":
            path.write_bytes(b"../..\n")
            os.truncate(path, 1 << 40)
        case "with a null":
            path.write_bytes(b"a\0b")
        case "not UTF-8":
            path.write_bytes(b"\xff\n")
        case _:
            pass
    assert os.fsdecode(b"\xff" if kind == "not UTF-8" else b"") == read_pointer(str(path))


def test_a_linked_working_tree_leads_to_its_repository(tmp_path: Path) -> None:
    """Its own git directory is below the common one, and the same directory is found in the other tree."""
    root = make(tmp_path / "first", {"src/a": "a\n"})
    other = tmp_path / "second"
    git(root, "worktree", "add", "-q", "--detach", str(other))
    own, common = directories_of(str(other), str(other / ".git"))
    assert (root / ".git").samefile(common)
    assert (root / ".git/worktrees/second").samefile(own)
    place = (root / "src/a").resolve().parts[1:]
    assert [str(root / "src")] == list(same_in_others(str(other / "src"), [place]))


def test_an_endless_pointer_of_a_checkout(tmp_path: Path) -> None:
    """A rule is decided even if the checkout names a repository whose files have no end."""
    hostile = tmp_path / "elsewhere"
    hostile.mkdir()
    (hostile / "commondir").touch()
    os.truncate(hostile / "commondir", 1 << 40)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").write_text(f"gitdir: {hostile}\n")
    place = (tmp_path / "two/a").parts[1:]
    assert [str(tmp_path / "two")] == list(same_in_others(str(tmp_path / "one"), [place]))
