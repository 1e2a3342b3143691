"""Snapshots equal the trees that git adds to an empty index, after any change to the files."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from subdeck.core.git.names import name_of, worded
from subdeck.core.git.snapshot import Store

from .repositories import commit, found, git, make

pytestmark = [pytest.mark.fuzz, pytest.mark.processes]

STEPS = 30


def by_git(root: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the tree of all files, as git adds it."""
    index.unlink(missing_ok=True)
    with monkeypatch.context() as patched:
        patched.setenv("GIT_INDEX_FILE", str(index))
        git(root, "add", "-A")
        return git(root, "write-tree")


def do_something(chance: random.Random, root: Path) -> None:
    """Change the working tree in one of the ways in which people and programs do."""
    names = [path for path in sorted(root.rglob("*")) if ".git" not in path.relative_to(root).parts]
    files = [path for path in names if path.is_symlink() or path.is_file()]
    directories = [root, *(path for path in names if path.is_dir() and not path.is_symlink())]
    new = chance.choice(directories) / chance.choice(["a", "b", "c d", "é", "-x", "e.o", ".gitignore.bak"])
    some = chance.choice(files) if files else new
    match chance.randrange(9):
        case 0 | 1 if not os.path.lexists(new):
            new.write_text(str(chance.random()))
        case 2 if not some.is_symlink() and some.exists():
            some.write_text(some.read_text() + "x")
        case 3 if os.path.lexists(some):
            some.unlink()
        case 4 if os.path.lexists(some) and not os.path.lexists(new):
            some.rename(new)
        case 5 if not some.is_symlink() and some.exists():
            some.chmod(0o755 if chance.random() < 0.5 else 0o644)
        case 6 if not os.path.lexists(new):
            new.symlink_to(chance.choice(["a", "..", "/nowhere"]))
        case 7 if os.path.lexists(some):
            some.unlink()
            some.mkdir()
            (some / "in").write_text(str(chance.random()))
        case 8 if len(directories) > 1:
            gone = chance.choice(directories[1:])
            shutil.rmtree(gone)
            if chance.random() < 0.5:
                gone.write_text("was a directory")
        case _:
            (root / "a" if not (root / "a").is_dir() else root / "a/b").touch()


@pytest.mark.parametrize("seed", range(4))
def test_as_git_would_add_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """After each of many changes, a snapshot with a kept index equals git's tree from an empty index."""
    chance = random.Random(seed)
    root = make(tmp_path / "r", {"a": "1", "dir/b": "1", "dir/deep/c": "1", ".gitignore": "*.o\n"})
    store = Store(str(tmp_path / "store"))
    for _ in range(STEPS):
        for _ in range(chance.randrange(1, 6)):
            do_something(chance, root)
        if chance.random() < 0.15:
            commit(root)
        assert by_git(root, tmp_path / "index", monkeypatch) == store.take(found(root)).tree


@given(st.binary(max_size=20).filter(lambda name: b"\0" not in name))
def test_any_name_is_taken_back(name: bytes) -> None:
    """Any file name, of any bytes, survives its conversion to text and back, and its text can be encoded."""
    word = worded(name)
    assert name == name_of(word)
    assert word.encode().decode() == word
