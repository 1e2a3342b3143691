"""Repositories of every odd kind: correct snapshots, or a clear error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from subdeck.core.git.diff import changed_files
from subdeck.core.git.program import GitError
from subdeck.core.git.repository import find
from subdeck.core.git.snapshot import Snapshot, Store
from subdeck.core.run.changes import FileStatus

from .repositories import commit, found, git, listed, make, write

pytestmark = pytest.mark.processes


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def take(store: Store, root: Path) -> Snapshot:
    return store.take(found(root))


def changes(store: Store, root: Path, before: Snapshot) -> dict[str, FileStatus]:
    after = take(store, root)
    return {file.path: file.status for file in changed_files(store.git(found(root)), before.tree, after.tree)}


def test_no_repository(tmp_path: Path) -> None:
    """A directory outside of any repository, or a missing one, has no repository."""
    assert find(str(tmp_path)) is None
    assert find(str(tmp_path / "missing")) is None
    (tmp_path / ".git").mkdir()
    assert find(str(tmp_path)) is None, "git passes over an empty one"


def test_below_the_root(tmp_path: Path) -> None:
    """The prefix below the root is found from anywhere in the working tree, even by a link."""
    root = make(tmp_path / "r", {"services/api/a": "1"})
    (tmp_path / "link").symlink_to(root / "services")
    assert ("services/api", str(root), "main") == _place(root / "services/api")
    assert ("services/api", str(root), "main") == _place(tmp_path / "link/api")
    git(root, "checkout", "-q", "--detach")
    assert ("", str(root), None) == _place(root)


def _place(directory: Path) -> tuple[str, str, str | None]:
    repository = found(directory)
    assert "" == repository.trouble
    return repository.prefix, repository.root, repository.branch


def test_without_a_commit(tmp_path: Path, store: Store) -> None:
    """Before the first commit, snapshots have the files that exist, and new files are changes."""
    root = make(tmp_path / "r")
    repository = found(root)
    assert (None, "main", "") == (repository.head, repository.branch, repository.trouble)
    before = take(store, root)
    write(root, {"a": "1"})
    git(root, "add", "a")
    write(root, {"b": "1"})
    assert {"a": FileStatus.ADDED, "b": FileStatus.ADDED} == changes(store, root, before)


def bare(root: Path) -> None:
    git(root, "config", "core.bare", "true")


def without_head(root: Path) -> None:
    (root / ".git/HEAD").unlink()


def with_a_broken_head(root: Path) -> None:
    (root / ".git/HEAD").write_text("nonsense\n")


def with_a_broken_branch(root: Path) -> None:
    (root / ".git/refs/heads/main").write_text("nonsense\n")


def without_its_commit(root: Path) -> None:
    (root / ".git/refs/heads/main").write_text("1" * 40 + "\n")


def with_broken_settings(root: Path) -> None:
    (root / ".git/config").write_text("[core\n")


def of_a_newer_git(root: Path) -> None:
    git(root, "config", "core.repositoryFormatVersion", "1")
    git(root, "config", "extensions.ofTomorrow", "true")


def a_file_that_leads_nowhere(root: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").write_text("gitdir: /nowhere\n")


def a_file_of_nonsense(root: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").write_bytes(b"\0\xff")


def another_users(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        os.chown(path, 4711, 4711)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (bare, "bare"),
        (without_head, "not a git repository"),
        (with_a_broken_head, "not a git repository"),
        (with_a_broken_branch, "cannot read the checked-out commit"),
        (without_its_commit, "the checked-out commit is missing"),
        (with_broken_settings, "bad config"),
        (of_a_newer_git, "unknown repository extension"),
        (a_file_that_leads_nowhere, "not a git repository"),
        (a_file_of_nonsense, "invalid gitfile format"),
        pytest.param(another_users, "dubious ownership", marks=pytest.mark.skipif(os.geteuid() != 0, reason="chown")),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, damage: Callable[[Path], None], words: str) -> None:
    """A broken repository, or another user's, is found with a one-line reason; no snapshot is taken."""
    root = make(tmp_path / "r", {"a": "1"})
    damage(root)
    repository = found(root)
    assert words in repository.trouble and "\n" not in repository.trouble
    with pytest.raises(GitError, match=words):
        Store(str(tmp_path / "store")).take(repository)


def test_a_bare_one(tmp_path: Path) -> None:
    """A repository without a working tree is reported as bare."""
    root = make(tmp_path / "r", {}, "--bare")
    assert found(root).is_bare and found(root / "refs").is_bare
    assert str(root) == found(root).git_dir
    other = make(tmp_path / "other", {"a": "1"})
    bare(other)
    assert str(other / ".git") == found(other).git_dir


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git, a repository is found with the reason that git is missing; other directories have none."""
    root = make(tmp_path / "r", {"a": "1"})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is not on PATH" == found(root).trouble
    assert find(str(tmp_path)) is None


@pytest.mark.parametrize("damage", ["garbage", "cut", "missing", "empty"])
def test_a_broken_index(tmp_path: Path, store: Store, damage: str) -> None:
    """If the user's index cannot be read, files are compared with the last commit."""
    root = make(tmp_path / "r", {"a": "1", "b": "1"})
    index = root / ".git/index"
    content = index.read_bytes()
    match damage:
        case "garbage":
            index.write_bytes(b"nonsense" * 20)
        case "cut":
            index.write_bytes(content[: len(content) // 2])
        case "missing":
            index.unlink()
        case _:
            index.write_bytes(b"")
    before = take(store, root)
    assert git(root, "rev-parse", "HEAD^{tree}") == before.tree
    write(root, {"a": "2"})
    assert {"a": FileStatus.MODIFIED} == changes(store, root, before)


def test_missing_objects(tmp_path: Path, store: Store) -> None:
    """If the content of a committed file is lost, the current content is still recorded."""
    root = make(tmp_path / "r", {"a": "1", "b": "1\n", "dir/c": "1"})
    for path in ("HEAD:b", "HEAD:dir"):
        name = git(root, "rev-parse", path)
        (root / ".git/objects" / name[:2] / name[2:]).unlink()
    before = take(store, root)
    write(root, {"a": "2"})
    assert {"a": FileStatus.MODIFIED} == changes(store, root, before)


def test_sha256(tmp_path: Path, store: Store) -> None:
    """Repositories with SHA-256 ids work as any other."""
    root = make(tmp_path / "r", {"a": "1"}, "--object-format=sha256")
    before = take(store, root)
    assert git(root, "rev-parse", "HEAD^{tree}") == before.tree and 64 == len(before.tree)
    write(root, {"a": "2", "new": "1"})
    assert {"a": FileStatus.MODIFIED, "new": FileStatus.ADDED} == changes(store, root, before)
    assert "2" == git(root, "show", f"{store.take(found(root), into_repository=True).tree}:a")


def test_line_ends(tmp_path: Path, store: Store) -> None:
    """A file that differs only by the configured line ends is unchanged."""
    root = make(tmp_path / "r", {"a": "1\n2\n"})
    git(root, "config", "core.autocrlf", "true")
    write(root, {"a": "1\r\n2\r\n"})
    before = take(store, root)
    assert git(root, "rev-parse", "HEAD^{tree}") == before.tree
    write(root, {"a": "1\r\n2\r\n3\r\n"})
    assert {"a": FileStatus.MODIFIED} == changes(store, root, before)
    git(root, "config", "--global", "core.safecrlf", "true")
    write(root, {"mixed": "1\r\n2\n"})
    assert "mixed" in listed(store.directory, take(store, root).tree)


@pytest.mark.parametrize("options", [("--cone",), ("--no-cone",), ("--cone", "--sparse-index")])
def test_sparse_checkout(tmp_path: Path, store: Store, options: tuple[str, ...]) -> None:
    """Files that are not checked out are not deletions; a file written outside of the sparse checkout is a change."""
    root = make(tmp_path / "r", {"in/a": "1", "out/b": "1", "out/c": "1"})
    git(root, "sparse-checkout", "set", *options, "/in/" if "--no-cone" in options else "in")
    assert not (root / "out/b").exists()
    before = take(store, root)
    assert git(root, "rev-parse", "HEAD^{tree}") == before.tree
    write(root, {"in/a": "2", "out/new": "1"})
    assert {"in/a": FileStatus.MODIFIED, "out/new": FileStatus.ADDED} == changes(store, root, before)


def test_split_index(tmp_path: Path, store: Store) -> None:
    """A split index is read as one."""
    root = make(tmp_path / "r", {"a": "1", "b": "1"})
    git(root, "update-index", "--split-index")
    write(root, {"a": "2"})
    git(root, "add", "a")
    before = take(store, root)
    assert 2 == len(listed(store.directory, before.tree))
    assert list(Path(store.directory).glob("sharedindex.*"))
    write(root, {"b": "2"})
    assert {"b": FileStatus.MODIFIED} == changes(store, root, before)


def test_submodules(tmp_path: Path, store: Store) -> None:
    """A submodule at another commit is a change, one with inner changes is skipped, a missing one is unchanged."""
    make(tmp_path / "sub", {"x": "1"})
    root = make(tmp_path / "r", {"a": "1"})
    for name in ("one", "two", "three"):
        git(root, "submodule", "add", "-q", str(tmp_path / "sub"), name)
    commit(root)
    git(root, "submodule", "deinit", "-q", "three")
    before = take(store, root)
    assert (git(root, "rev-parse", "HEAD^{tree}"), ()) == (before.tree, before.skipped)
    write(root / "one", {"x": "2"})
    commit(root / "one")
    write(root / "two", {"x": "2"})
    assert {"one": FileStatus.SUBMODULE} == changes(store, root, before)
    after = take(store, root)
    assert ["two"] == [one.path for one in after.skipped] and "submodule" in after.skipped[0].why
    write(root / "two", {"x": "3"})
    assert after.skipped != take(store, root).skipped, "further changes are told, too"


def test_a_locked_index(tmp_path: Path, store: Store) -> None:
    """A lock in the user's repository does not prevent a snapshot, and stays."""
    root = make(tmp_path / "r", {"a": "1"})
    (root / ".git/index.lock").write_text("")
    before = take(store, root)
    write(root, {"a": "2"})
    assert {"a": FileStatus.MODIFIED} == changes(store, root, before)
    assert (root / ".git/index.lock").exists()


def test_an_unfinished_merge(tmp_path: Path, store: Store) -> None:
    """Conflicting files have their working tree content in the snapshot."""
    root = make(tmp_path / "r", {"a": "1\n", "b": "1\n"})
    git(root, "checkout", "-q", "-b", "other")
    write(root, {"a": "2\n", "b": None})
    commit(root)
    git(root, "checkout", "-q", "main")
    write(root, {"a": "3\n", "b": "3\n"})
    commit(root)
    git(root, "merge", "other", check=False)
    assert "UU a" in git(root, "status", "--porcelain")
    before = take(store, root)
    assert b"<<<<<<<" in store.git(found(root)).run("show", f"{before.tree}:a")
    write(root, {"a": "resolved\n"})
    assert {"a": FileStatus.MODIFIED} == changes(store, root, before)


def test_a_store_inside(tmp_path: Path) -> None:
    """Snapshots exclude subdeck's state, even if it lies in the repository, as in one of the home directory."""
    root = make(tmp_path / "home", {"a": "1"})
    store = Store(str(root / ".local/[state]/work/1"), aside=(str(root / ".local/[state]/work"),))
    write(root / ".local/[state]", {"work/2/file": "x", "mine": "x"})
    tree = take(store, root).tree
    assert {"a", ".local/[state]/mine"} == set(listed(store.directory, tree))


def test_untracked_files_that_a_repository_hides(tmp_path: Path, store: Store) -> None:
    """If a repository hides untracked files, as one of a home directory does, they are not scanned."""
    root = make(tmp_path / "r", {"a": "1"})
    git(root, "config", "status.showUntrackedFiles", "no")
    write(root, {"untracked": "x", "a": "2"})
    assert {"a"} == set(listed(store.directory, take(store, root).tree))


def test_borrowed_objects_in_any_place(tmp_path: Path) -> None:
    """Borrowed objects are found with any characters in the repository's path."""
    root = make(tmp_path / 'a "b"\n:#\\c' / "r", {"a": "1"})
    repository = found(root)
    store = Store(str(tmp_path / 'st"o\nre:' / "s"))
    before = store.take(repository)
    write(root, {"a": "2"})
    assert {"a": FileStatus.MODIFIED} == changes(store, root, before)
    shutil.rmtree(store.directory)
