"""Copying ignored files into a worktree: the files copied, the reasons for skipping, and the files left untouched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.work.worktree import Copied, Copying

from ..full_disk import no_file_longer_than
from ..git.repositories import git, make, write

pytestmark = pytest.mark.processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "repository", {"a.py": "one\n", ".gitignore": ".env\ncache/\nold\n"})


@pytest.fixture
def tree(root: Path) -> Path:
    """A worktree of the committed files."""
    tree = root.parent / "tree"
    git(root, "worktree", "add", "-q", "--detach", str(tree))
    return tree


def brought(root: Path, tree: Path, *copy: str, link: tuple[str, ...] = ()) -> Copied:
    return Copying(str(root), str(tree)).bring(copy, link)


def files_of(tree: Path) -> set[str]:
    """Return the files of a worktree that are not from git."""
    return set(git(tree, "ls-files", "--others").splitlines())


@pytest.mark.parametrize("name", ["lib/.env", "lib/sub/.env"])
def test_nothing_is_made_outside(root: Path, tree: Path, name: str) -> None:
    """Nothing is created behind a link in the worktree, with a warning."""
    outside = root.parent / "outside"
    outside.mkdir()
    (tree / "lib").symlink_to(outside)
    write(root, {name: "KEY=1\n"})
    for copy, link in (((".env",), ()), ((), (".env",))):
        copied = brought(root, tree, *copy, link=link)
        assert [f"{name} was not copied or linked: its path is a link out of the worktree"] == copied.troubles
        assert ([], []) == (copied.names, copied.linked)
    assert [] == os.listdir(outside)


def test_no_half_of_a_file_is_left(root: Path, tree: Path) -> None:
    """A file that the disk refuses is reported and removed; the others are copied, and only they count as copied."""
    write(root, {".env": "x" * 5000, "cache/big": "x" * 5000, "cache/small": "x", "cache/z/small": "x"})
    with no_file_longer_than(1000):
        copied = brought(root, tree, ".env", "cache")
    assert {"cache/small", "cache/z/small"} == files_of(tree)
    why = "was not copied or linked: File too large"
    assert [f".env {why}", f"cache/big {why}"] == sorted(copied.troubles)
    assert (["cache"], 2) == (copied.names, copied.files)


def test_what_is_there_stays(root: Path, tree: Path) -> None:
    """A file already in the worktree, from git or by a link, stays unchanged."""
    (tree / ".env").write_text("of the worktree\n")
    write(root, {".env": "of the project\n"})
    for link in ((), (".env",)):
        copied = brought(root, tree, ".env", link=link)
        assert ([], [], []) == (copied.names, copied.linked, copied.troubles)
    assert "of the worktree\n" == (tree / ".env").read_text() and not (tree / ".env").is_symlink()


def test_a_part_and_the_whole(root: Path, tree: Path) -> None:
    """A directory is copied whole although a part is linked or named before it; that part stays unchanged."""
    write(root, {"cache/linked/x": "x", "cache/deep/x": "x", "cache/deep/y": "y", "cache/z": "z"})
    (root / ".gitignore").write_text("cache\n")
    (root / "cache" / "deep").chmod(0o700)
    copied = brought(root, tree, "cache/deep/x", "cache", link=("cache/linked",))
    assert (["cache/deep/x", "cache"], ["cache/linked"], []) == (copied.names, copied.linked, copied.troubles)
    assert str(root / "cache" / "linked") == os.readlink(tree / "cache" / "linked")
    there = {name: (tree / "cache" / name).read_text() for name in ("deep/x", "deep/y", "z")}
    assert {"deep/x": "x", "deep/y": "y", "z": "z"} == there
    assert (3, 0o700) == (copied.files, (tree / "cache" / "deep").stat().st_mode & 0o777)


def test_what_is_no_file(root: Path, tree: Path) -> None:
    """A named pipe is never read, and is reported if the list names it."""
    write(root, {"cache/x": "x"})
    os.mkfifo(root / "cache" / "pipe")
    copied = brought(root, tree, "cache/pipe", "cache")
    assert ["cache/pipe was not copied or linked: not a regular file"] == copied.troubles
    assert ["x"] == os.listdir(tree / "cache")


def test_a_part_of_what_is_ignored(root: Path, tree: Path) -> None:
    """A path copies one part of an ignored directory, unless a link is on the way to it."""
    write(root, {"cache/deep/wanted/x": "x", "cache/deep/other": "x", "deep/wanted": "x"})
    (root / "cache" / "link").symlink_to(root / "deep")
    copied = brought(root, tree, "cache/deep/wanted", "/cache/link/wanted", "cache/nowhere")
    assert {"cache/deep/wanted/x"} == files_of(tree)
    assert ["cache/deep/wanted"] == copied.names


def test_nothing_but_what_is_ignored(root: Path, tree: Path) -> None:
    """A pattern copies no file that git does not ignore, none outside the project, and no runs."""
    write(root, {"plain": "x", "../old": "x", "old": "x", ".pi/runs": "x"})
    (root / ".gitignore").write_text(".pi\nold\n")
    copied = brought(root, tree, "plain", "../old", "..", ".", "", "/", ".pi", ".p*", "a.py", str(root.parent / "old"))
    assert ([], []) == (copied.names, copied.troubles)
    assert set() == files_of(tree)
