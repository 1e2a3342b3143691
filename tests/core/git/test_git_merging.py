"""Merge trees, and write the result into a working tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.git import merges
from subdeck.core.git.program import GitError, GitMissing
from subdeck.core.git.snapshot import InTheWay, Store

from .repositories import commit, found, git, make, write

pytestmark = pytest.mark.processes

TEXT = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def tree_of(store: Store, root: Path, files: dict[str, str | bytes | None]) -> str:
    """Return the tree of a working tree with other files; the working tree stays unchanged."""
    before = {name: (root / name).read_bytes() if (root / name).exists() else None for name in files}
    write(root, files)
    tree = store.take(found(root)).tree
    write(root, {name: content for name, content in before.items() if content is not None})
    for name, content in before.items():
        if content is None and (root / name).exists():
            (root / name).unlink()
    return tree


def test_what_goes_together_is_merged(tmp_path: Path, store: Store) -> None:
    """The merged tree has both sides' changes, even in one file."""
    root = make(tmp_path / "r", {"a": TEXT, "gone": "x"})
    base = store.take(found(root)).tree
    theirs = tree_of(store, root, {"a": TEXT + "theirs\n", "new": "x", "gone": None})
    ours = tree_of(store, root, {"a": "ours\n" + TEXT})
    git_there = store.git(found(root))
    merge = merges.merged(git_there, base, ours, theirs)
    assert () == merge.conflicts
    assert f"ours\n{TEXT}theirs\n".encode() == git_there.run("show", f"{merge.tree}:a")
    assert [b"a", b"new"] == git_there.lines("ls-tree", "-z", "--name-only", merge.tree)
    assert theirs == merges.merged(git_there, base, base, theirs).tree
    assert ours == merges.merged(git_there, base, ours, base).tree


@pytest.mark.parametrize("name", ["f" * 40, "no-branch", "HEAD\nHEAD", "\udcff"])
def test_what_has_no_tree_is_refused(tmp_path: Path, store: Store, name: str) -> None:
    """A name without a tree is an error that says which, also if other names have one."""
    root = make(tmp_path / "r", {"a": TEXT})
    store.take(found(root))
    git_there = store.git(found(root))
    assert [found(root).tree] * 2 == git_there.trees("HEAD", found(root).tree)
    with pytest.raises(GitError, match="has no tree of"):
        git_there.trees("HEAD", name)


def test_conflicts_are_told_by_file(tmp_path: Path, store: Store) -> None:
    """Each conflicting file is reported once with the kind of its conflict, even with an odd name."""
    names = {"text": TEXT, "deleted": TEXT, 'quo"te\nline': TEXT, "fine": TEXT}
    root = make(tmp_path / "r", dict(names))
    base = store.take(found(root)).tree
    changed = {name: f"theirs\n{text}" for name, text in names.items()}
    theirs = tree_of(store, root, {**changed, "both": "theirs"})
    ours = tree_of(store, root, {"text": f"ours\n{TEXT}", "deleted": None, 'quo"te\nline': f"o\n{TEXT}", "both": "o"})
    merge = merges.merged(store.git(found(root)), base, ours, theirs)
    assert {
        '"quo\\"te\\nline"': "content",
        "both": "add/add",
        "deleted": "modify/delete",
        "text": "content",
    } == {conflict.path: conflict.kind for conflict in merge.conflicts}
    assert all(conflict.why for conflict in merge.conflicts)


def test_an_older_git_is_told(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """If git is too old to merge trees, the error names both versions before anything is done."""
    root = make(tmp_path / "r", {"a": "1"})
    at = store.git(found(root))
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(f'#!/bin/sh\n[ "$1" = version ] && exec echo git version 2.37.1\ntouch {tmp_path}/done\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    with pytest.raises(GitMissing, match=r"git 2\.38 or newer is needed to apply changes, but this is 2\.37\.1"):
        merges.merged(at, "HEAD", "HEAD", "HEAD")
    assert not (tmp_path / "done").exists()


def test_written_as_a_person_would(tmp_path: Path, store: Store) -> None:
    """Files are changed, made and removed without touching the index or staged changes."""
    root = make(tmp_path / "r", {"a": "1", "gone": "x", "dir/file": "x", "run": "x"})
    write(root, {"staged": "s", "untracked": "u"})
    git(root, "add", "staged")
    now = store.take(found(root)).tree
    (root / "run").chmod(0o755)
    (root / "dir/file").unlink()
    (root / "dir").rmdir()
    wanted = tree_of(store, root, {"a": "2", "gone": None, "dir": "now a file", "new/deep": "x", "untracked": "v"})
    (root / "run").chmod(0o644)
    write(root, {"dir/file": "x"})
    index, status = (root / ".git/index").read_bytes(), os.stat(root / ".git/index").st_mtime_ns
    store.write(found(root), now, wanted)
    assert (index, status) == ((root / ".git/index").read_bytes(), os.stat(root / ".git/index").st_mtime_ns)
    assert ("2", "now a file", "x", "v") == tuple(
        (root / name).read_text() for name in ("a", "dir", "new/deep", "untracked")
    )
    assert not (root / "gone").exists() and os.access(root / "run", os.X_OK)
    assert "A  staged" in git(root, "status", "--porcelain")
    assert wanted == store.take(found(root)).tree
    store.write(found(root), wanted, now)
    assert now == store.take(found(root)).tree, "and back"


def test_what_changed_meanwhile_is_not_overwritten(tmp_path: Path, store: Store) -> None:
    """A file that has changed since the tree was made is named in the error, and no file is written."""
    root = make(tmp_path / "r", {"a": "1", "b": "1"})
    now = store.take(found(root)).tree
    wanted = tree_of(store, root, {"a": "2", "b": "2"})
    write(root, {"b": "a person's"})
    with pytest.raises(InTheWay, match="changed by another program: b") as refused:
        store.write(found(root), now, wanted)
    assert ("b",) == refused.value.paths
    assert ("1", "a person's") == ((root / "a").read_text(), (root / "b").read_text())


@pytest.mark.parametrize(
    ("ignored", "wanted"), [("made", "made"), ("made", "made/deep"), ("made/deep", "made"), ("made/x", "made/x")]
)
def test_ignored_files_are_not_overwritten(tmp_path: Path, store: Store, ignored: str, wanted: str) -> None:
    """An ignored file that git would overwrite is named and stays unchanged, and nothing is written."""
    root = make(tmp_path / "r", {"a": "1"})
    now = store.take(found(root)).tree
    other = Store(str(tmp_path / "other"))
    tree = tree_of(other, root, {"a": "2", wanted: "theirs"})
    other.give(found(root), [tree])
    git(root, "clean", "-fdq")
    (root / ".git/info/exclude").write_text("made\n")
    write(root, {ignored: "mine"})
    with pytest.raises(InTheWay, match=f"untracked by git: {ignored}"):
        store.write(found(root), now, tree)
    assert ("1", "mine") == ((root / "a").read_text(), (root / ignored).read_text())


def test_a_link_in_the_way_is_not_followed(tmp_path: Path, store: Store) -> None:
    """If a directory has become a link to elsewhere, nothing is written there."""
    root = make(tmp_path / "r", {"dir/a": "1"})
    now = store.take(found(root)).tree
    wanted = tree_of(store, root, {"dir/a": "2", "dir/b": "2"})
    outside = tmp_path / "outside"
    (root / "dir").rename(outside)
    (root / "dir").symlink_to(outside)
    with pytest.raises(InTheWay):
        store.write(found(root), now, wanted)
    assert ["a"] == os.listdir(outside) and "1" == (outside / "a").read_text()


def test_the_branch_goes_on(tmp_path: Path, store: Store) -> None:
    """The branch and its files advance to a commit made of a tree; conflicting edits have the advance refused."""
    root = make(tmp_path / "r", {"a": "1", "b": "1"})
    repository = found(root)
    wanted = tree_of(store, root, {"a": "2"})
    store.give(repository, [wanted])
    made = merges.commit(repository.git, wanted, [str(repository.head)], "A subject\n\nA body: größer\n")
    write(root, {"b": "uncommitted"})
    merges.advance(repository, made)
    assert (made, "2") == (git(root, "rev-parse", "main"), (root / "a").read_text())
    assert "A subject\n\nA body: größer" == git(root, "log", "-1", "--format=%B").strip()
    assert "uncommitted" == (root / "b").read_text() and "" == git(root, "fsck", "--no-dangling")
    write(root, {"a": "3"})
    later = commit(root)
    git(root, "reset", "-q", "--hard", made)
    write(root, {"a": "mine"})
    with pytest.raises(GitError, match="git merge"):
        merges.advance(repository, later)
    assert (made, "mine") == (git(root, "rev-parse", "main"), (root / "a").read_text())
    (root / ".git/index.lock").touch()
    with pytest.raises(GitError, match="locked"):
        merges.advance(repository, later)


def test_the_branch_goes_over_no_ignored_file(tmp_path: Path) -> None:
    """Advancing the branch is refused if git would overwrite an ignored file."""
    root = make(tmp_path / "r", {"a": "1"})
    first = found(root).head
    write(root, {"made": "theirs"})
    later = commit(root)
    git(root, "reset", "-q", "--hard", str(first))
    (root / ".git/info/exclude").write_text("made\n")
    write(root, {"made": "mine"})
    with pytest.raises(GitError):
        merges.advance(found(root), later)
    assert (first, "mine") == (found(root).head, (root / "made").read_text())
