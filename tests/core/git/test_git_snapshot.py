"""The contents of a snapshot of a working tree; taking it leaves everything of the user unchanged."""

from __future__ import annotations

import io
import itertools
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.git.diff import changed_files, write_patch
from subdeck.core.git.names import name_of, worded
from subdeck.core.git.program import GitError
from subdeck.core.git.snapshot import Snapshot, Store
from subdeck.core.run.changes import ChangedFile, FileStatus

from tests.killing import deaths

from .repositories import commit, found, git, listed, make, write

pytestmark = pytest.mark.processes


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "state" / "store"))


def take(store: Store, root: Path) -> Snapshot:
    return store.take(found(root))


def changes(store: Store, root: Path, before: Snapshot) -> dict[str, ChangedFile]:
    """Take another snapshot, and return the changes since the earlier one, by path."""
    after = take(store, root)
    return {file.path: file for file in changed_files(store.git(found(root)), before.tree, after.tree)}


def everything_of(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return everything below a directory, with times and contents."""
    return dict(_entries(root))


def _entries(root: Path) -> Iterator[tuple[str, tuple[int, int, int, bytes]]]:
    for place, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = os.path.join(place, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            # git updates the time of an object that is requested again, so that it is not pruned as unused.
            time = 0 if "/objects/" in path else status.st_mtime_ns
            yield path, (status.st_mode, time, status.st_ino, content)


def test_what_is_not_committed_is_in_it(tmp_path: Path, store: Store) -> None:
    """Changed, staged and untracked files are in a snapshot, ignored files are not."""
    root = make(tmp_path / "r", {"a": "1\n", "b": "1\n", "gone": "1\n", ".gitignore": "*.o\n"})
    before = take(store, root)
    assert git(root, "rev-parse", "HEAD^{tree}") == before.tree
    write(root, {"a": "1\n2\n", "staged": "x\n", "new/deep": "x\n", "made.o": "x\n", "gone": None})
    git(root, "add", "staged")
    changed = changes(store, root, before)
    assert {
        "a": FileStatus.MODIFIED,
        "gone": FileStatus.DELETED,
        "new/deep": FileStatus.ADDED,
        "staged": FileStatus.ADDED,
    } == {path: file.status for path, file in changed.items()}
    assert (1, 0) == (changed["a"].added, changed["a"].removed)


def test_nothing_of_the_users_is_touched(tmp_path: Path, store: Store) -> None:
    """Index, references, stash, objects and files stay the same, to the byte and the time."""
    root = make(tmp_path / "r", {"a": "1\n", "b": "2\n"})
    write(root, {"a": "stashed\n"})
    git(root, "stash")
    write(root, {"a": "2\n", "staged": "x", "untracked": "x"})
    git(root, "add", "staged")
    os.utime(root / "b")  # git would refresh it in the index
    before = everything_of(root)
    first = take(store, root)
    write(root, {"untracked": "y"})
    assert ["untracked"] == list(changes(store, root, first))
    after = everything_of(root)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert {str(root / "untracked")} == changed


def test_kinds_of_changes_are_told_apart(tmp_path: Path, store: Store) -> None:
    """A rename, a mode change, a binary change and a link in place of a file each have their own status."""
    text = "".join(f"line {number}\n" for number in range(30))
    root = make(tmp_path / "r", {"old": text, "run": "#!/bin/sh\n", "binary": b"\0\1", "file": "x\n", "link": "x"})
    (root / "link").unlink()
    (root / "link").symlink_to("file")
    commit(root)
    before = take(store, root)
    (root / "old").rename(root / "renamed")
    (root / "run").chmod(0o755)
    write(root, {"binary": b"\0\2"})
    (root / "file").unlink()
    (root / "file").symlink_to("/etc/passwd")
    changed = changes(store, root, before)
    assert {
        "binary": FileStatus.MODIFIED,
        "file": FileStatus.TYPE,
        "renamed": FileStatus.RENAMED,
        "run": FileStatus.MODE,
    } == {path: file.status for path, file in changed.items()}
    assert "old" == changed["renamed"].old_path
    assert (0, 0) == (changed["renamed"].added, changed["renamed"].removed)
    assert changed["binary"].added is None and changed["binary"].note
    assert (1, 1) == (changed["file"].added, changed["file"].removed), "the link, not what it leads to"


NAMES = (
    b"new\nline", b'quo"te', b"back\\slash", b"tab\t", b"invalid \xff\xfe", b"-leading", b":(glob)*", b"*", b" blank ",
    "größe".encode(), b"esc\x1b[31m", b"#hash", b"{a,b}", b"--", b"a:b",
)  # fmt: skip


def test_any_name_of_a_file(tmp_path: Path, store: Store) -> None:
    """A file with any bytes in its name is stored, and its displayed name can be converted back."""
    root = make(tmp_path / "r", {"a": "1"})
    before = take(store, root)
    for name in NAMES:
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(b"x\n")
    changed = changes(store, root, before)
    assert set(NAMES) == {name_of(path) for path in changed}
    assert all(path.isprintable() and path.encode() for path in changed)
    assert 'new\\nline"' == changed['"new\\nline"'].path[1:]
    patch = io.BytesIO()
    write_patch(store.git(found(root)), before.tree, take(store, root).tree, patch, 1 << 20)
    heads = [line[4:].rstrip(b"\t") for line in patch.getvalue().split(b"\n") if line.startswith(b"+++ ")]
    assert set(changed) == {worded(name_of(os.fsdecode(head))[2:]) for head in heads}


def test_large_files_are_told(tmp_path: Path, store: Store) -> None:
    """The content of a large file is not stored, tracked or not; its size and time are reported."""
    root = make(tmp_path / "r", {"tracked": "small"})
    with open(root / "tracked", "wb") as file:
        file.truncate(100 * 1024 * 1024)
    with open(root / "new", "wb") as file:
        file.truncate(21 * 1024 * 1024)
    taken = take(store, root)
    assert ["new", "tracked"] == [one.path for one in taken.skipped]
    assert 100 * 1024 * 1024 == taken.skipped[1].size and taken.skipped[1].mtime_ns
    assert ["tracked"] == list(listed(store.directory, taken.tree)), "as it was committed"
    assert sum(path.stat().st_size for path in Path(store.objects).rglob("*") if path.is_file()) < 100_000


def test_what_cannot_be_stored_is_told(tmp_path: Path, store: Store) -> None:
    """A pipe or socket in place of a file, and a repository inside, are reported without blocking."""
    root = make(tmp_path / "r", {"pipe": "x", "socket": "x", "fine": "x"})
    make(root / "inner", {"a": "x"})
    make(root / "unborn")
    (root / "pipe").unlink()
    os.mkfifo(root / "pipe")
    (root / "socket").unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(root / "socket"))
        write(root, {"fine": "y"})
        taken = take(store, root)
    told = {one.path: one.why for one in taken.skipped}
    assert {"pipe": "a named pipe", "socket": "a socket"}.items() <= told.items()
    assert told["inner"].startswith("a separate repository (")
    write(root, {"inner/a": "y"})
    changed = {one.path: one.why for one in take(store, root).skipped}
    assert told["inner"] != changed["inner"] and told["pipe"] == changed["pipe"], "and what changed in it shows"
    assert "fine" in listed(store.directory, taken.tree)


def test_unreadable_files_are_told(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable file is reported, and all others are stored."""
    root = make(tmp_path / "r", {"a": "x"})
    write(root, {"secret": "x", "fine": "y"})
    unreadable = os.path.join(os.fsencode(root), b"secret")
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: path != unreadable and may(path, mode, **more))
    taken = take(store, root)
    assert [("secret", "no read permission")] == [(one.path, one.why) for one in taken.skipped]
    assert {"a", "fine"} == set(listed(store.directory, taken.tree))


def test_a_file_that_git_refuses_costs_no_other(tmp_path: Path, store: Store) -> None:
    """If a user's filter fails for a file, that file is reported, and all others are stored."""
    root = make(tmp_path / "r", {"a": "x"})
    git(root, "config", "--global", "filter.broken.clean", "false")
    git(root, "config", "--global", "filter.broken.required", "true")
    write(root, {".gitattributes": "*.bad filter=broken\n", "one.bad": "x", **dict.fromkeys("bcdefgh", "x")})
    taken = take(store, root)
    assert ["one.bad"] == [one.path for one in taken.skipped]
    assert {".gitattributes", "a", *"bcdefgh"} == set(listed(store.directory, taken.tree))


def test_the_users_filters_run(tmp_path: Path, store: Store) -> None:
    """Filters that the user has set up, such as git-lfs, filter the files in a snapshot."""
    root = make(tmp_path / "r", {".gitattributes": "*.up filter=up\n"})
    git(root, "config", "--global", "filter.up.clean", "tr a-z A-Z")
    git(root, "config", "filter.up.clean", "echo checkout")
    write(root, {"a.up": "words\n"})
    taken = take(store, root)
    assert "" == taken.note
    assert "WORDS" == git(Path(store.directory), f"--git-dir={store.directory}", "show", f"{taken.tree}:a.up")


def test_filters_of_the_repository_are_told(tmp_path: Path, store: Store) -> None:
    """A filter from the repository's own settings, such as git-crypt, is reported as not run."""
    root = make(tmp_path / "r", {"a": "x"})
    git(root, "config", "filter.git-crypt.clean", "false")
    git(root, "config", "filter.git-crypt.required", "true")
    write(root, {".gitattributes": "* filter=git-crypt\n", "new": "x"})
    taken = take(store, root)
    assert "filters from the repository's own settings are not run (git-crypt)" == taken.note
    assert {".gitattributes", "a", "new"} == set(listed(store.directory, taken.tree))


def test_what_a_kill_left_is_no_hindrance(tmp_path: Path, store: Store) -> None:
    """Leftover locks or a damaged index prevent neither a snapshot nor writing files."""
    root = make(tmp_path / "r", {"a": "1"})
    before = take(store, root)
    Path(store.index).write_bytes(Path(store.index).read_bytes()[:20])
    write(root, {"new": "x"})
    for name in ("index.lock", "index.write", "index.write.lock"):
        (Path(store.directory) / name).touch()
    after = take(store, root)
    assert {"a", "new"} == set(listed(store.directory, after.tree))
    store.write(found(root), after.tree, before.tree)
    assert not (root / "new").exists()


def test_killed_while_it_is_removed(tmp_path: Path) -> None:
    """If removing a store is killed at any step, the next snapshot at its path has all its objects."""
    numbers = itertools.count()
    root = make(tmp_path / "r", {"a": "1"})
    write(root, {f"new/{number}/file": str(number) for number in range(3)})

    def prepare() -> Store:
        store = Store(str(tmp_path / str(next(numbers))))
        store.take(found(root))
        return store

    for store in deaths(prepare, Store.remove):
        tree = take(store, root).tree
        assert store.git(found(root)).run("rev-list", "--objects", tree)
        store.remove()
        assert not list(tmp_path.glob(f"{Path(store.directory).name}*"))


def test_what_the_user_hides_from_git_is_seen(tmp_path: Path, store: Store) -> None:
    """Changes of files marked assume-unchanged or skip-worktree are still changes."""
    root = make(tmp_path / "r", {"assumed": "1", "skipped": "1", "both": "1"})
    git(root, "update-index", "--assume-unchanged", "assumed", "both")
    git(root, "update-index", "--skip-worktree", "skipped", "both")
    before = take(store, root)
    write(root, {"assumed": "2", "skipped": "2", "both": "2"})
    assert {"assumed", "both", "skipped"} == set(changes(store, root, before))


def test_a_change_in_the_same_tick_of_the_clock(tmp_path: Path, store: Store) -> None:
    """A file changed right after git checked it, with the same length, is still a change."""
    root = make(tmp_path / "r", {"a": "1"})
    git(root, "config", "core.trustctime", "false")
    git(root, "config", "core.checkStat", "minimal")
    then = (root / "a").stat().st_mtime_ns - 10**11
    os.utime(root / "a", ns=(then, then))
    git(root, "update-index", "--refresh")
    write(root, {"a": "2"})
    for path in (root / "a", root / ".git/index"):
        os.utime(path, ns=(then, then))
    taken = take(store, root)
    assert b"2" == store.git(found(root)).run("show", f"{taken.tree}:a")


def test_into_the_repository(tmp_path: Path, store: Store) -> None:
    """For a commit, the objects are written into the repository, even if the store already has them."""
    root = make(tmp_path / "r", {"a": "1"})
    write(root, {"new/file": "x", "a": "2"})
    take(store, root)
    taken = store.take(found(root), into_repository=True)
    assert "x" == git(root, "show", f"{taken.tree}:new/file")
    assert "2" == git(root, "show", f"{taken.tree}:a")
    new = git(root, "rev-parse", f"{taken.tree}:new/file")
    (root / ".git/objects" / new[:2] / new[2:]).unlink()  # as git's clean-up may do
    assert taken.tree == store.take(found(root), into_repository=True).tree
    assert "x" == git(root, "show", new)


def test_a_longer_patch_is_cut_after_a_file(tmp_path: Path, store: Store) -> None:
    """A patch that is too long is cut after a file; its whole files can be applied, and a line reports the cut."""
    root = make(tmp_path / "r", {"a": "1"})
    before = take(store, root)
    write(root, dict.fromkeys(("b", "c", "d", "e"), "some words\n" * 40))
    after = take(store, root)
    patch = io.BytesIO()
    written = write_patch(store.git(found(root)), before.tree, after.tree, patch, 1500)
    assert not written.is_whole and len(patch.getvalue()) == written.size <= 1600
    assert b"cut here" in patch.getvalue().splitlines()[-1]
    git(root, "clean", "-fdq")
    git(root, "apply", "-", given=patch.getvalue())
    assert "b" in {path.name for path in root.iterdir()} and "e" not in {path.name for path in root.iterdir()}


def test_trouble_is_an_error(tmp_path: Path, store: Store) -> None:
    """An unusable repository gets no snapshot, and the error has the reason."""
    root = make(tmp_path / "r", {}, "--bare")
    with pytest.raises(GitError, match="bare"):
        take(store, root)
