"""Applying odd changes: names, links, modes, conflicting files, many runs one after another."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work.operation import APPLY

from tests.factories import open_engine
from tests.repositories import git, make_repository, make_worktree

pytestmark = pytest.mark.processes

NAMES = [
    "with space",
    "tab\there",
    'quote"d',
    "-dash",
    "line\nbreak",
    "ünï",
    ":(glob)*",
    "back\\slash",
    os.fsdecode(b"\xff\xfe"),
]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(make_repository(project_dir))


@pytest.fixture
def root(engine: Engine) -> Path:
    return Path(engine.project.root)


def in_worktree(engine: Engine) -> tuple[RunSnapshot, Path]:
    meta, tree = make_worktree(engine.project)
    (run,) = engine.snapshots((meta.run_id,))
    return run, tree


def commit_all(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "more")


def facts(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return kind, mode and content of each file, by its name."""
    found: dict[str, tuple[int, bytes]] = {}
    for directory, names, others in os.walk(root):
        names[:] = [name for name in names if name not in (".git", ".pi")]
        for name in (*others, *(one for one in names if os.path.islink(os.path.join(directory, one)))):
            path = os.path.join(directory, name)
            if name != ".git":
                content = os.fsencode(os.readlink(path)) if os.path.islink(path) else Path(path).read_bytes()
                found[os.path.relpath(path, root)] = os.lstat(path).st_mode, content
    return found


def hostile_names(tree: Path) -> None:
    for name in NAMES:
        (tree / name).write_text("theirs\n")


def link_for_file(tree: Path) -> None:
    (tree / "a.txt").unlink()
    (tree / "a.txt").symlink_to("/etc/hostname")


def directory_for_file(tree: Path) -> None:
    (tree / "a.txt").unlink()
    (tree / "a.txt").mkdir()
    (tree / "a.txt" / "inside").write_text("inside\n")


def file_for_directory(tree: Path) -> None:
    shutil.rmtree(tree / "sub")
    (tree / "sub").write_text("a file now\n")


def a_mode(tree: Path) -> None:
    (tree / "a.txt").chmod(0o755)


def binary(tree: Path) -> None:
    (tree / "blob").write_bytes(bytes(range(256)) * 20)


def crlf(tree: Path) -> None:
    (tree / "dos.txt").write_bytes(b"one\r\ntwo and more\r\n")


def renamed(tree: Path) -> None:
    (tree / "a.txt").rename(tree / "renamed.txt")


def empty(tree: Path) -> None:
    (tree / "empty").touch()


ODD = [hostile_names, link_for_file, directory_for_file, file_for_directory, a_mode, binary, crlf, renamed, empty]


@pytest.mark.parametrize("change", ODD, ids=lambda change: change.__name__)
def test_it_comes_as_it_is_and_goes_again(engine: Engine, root: Path, change: Callable[[Path], None]) -> None:
    """Applied files equal the run's files in bytes and mode; undo restores the user's files."""
    (root / "sub").mkdir()
    (root / "sub" / "one").write_text("one\n")
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    commit_all(root)
    run, tree = in_worktree(engine)
    change(tree)
    before, index = facts(root), git(root, "ls-files", "-s")
    plan = engine.work.plan(APPLY, run)
    assert not plan.refusal, plan.words
    plan.words.encode()
    engine.work.act(plan)
    assert (facts(tree), index) == (facts(root), git(root, "ls-files", "-s"))
    act = engine.last_act()
    assert act is not None
    engine.take_back(act)
    assert before == facts(root)


def lose_all_but_the_patch(engine: Engine, run: RunSnapshot, tree: Path) -> Path:
    """Leave only the run directory, without worktree, branch and recorded data; return the patch."""
    git(tree, "add", "-A")
    patch = subprocess.run(
        ("git", "diff", "--cached", "--binary", "--full-index", "--no-renames"),
        cwd=tree,
        check=True,
        capture_output=True,
    ).stdout
    place = Path(engine.project.run_dir(run.run_id), paths.CHANGES_PATCH)
    place.write_bytes(patch)
    git(Path(engine.project.root), "worktree", "remove", "--force", str(tree))
    git(Path(engine.project.root), "branch", "-D", f"subdeck/scout-{run.meta.short_id}")
    shutil.rmtree(paths.work_dir(engine.project, run.run_id))
    return place


@pytest.mark.parametrize("change", ODD, ids=lambda change: change.__name__)
def test_a_run_of_which_only_the_patch_is_left(engine: Engine, root: Path, change: Callable[[Path], None]) -> None:
    """A run with only its patch left is applied beside the user's changes, and undone."""
    (root / "sub").mkdir()
    (root / "sub" / "x").write_text("x\n")
    commit_all(root)
    run, tree = in_worktree(engine)
    change(tree)
    wanted = facts(tree)
    lose_all_but_the_patch(engine, run, tree)
    (root / "mine.txt").write_text("mine\n")
    before = facts(root)
    plan = engine.work.plan(APPLY, run)
    assert not plan.refusal, plan.refusal
    assert "using its patch" in " ".join(plan.notes)
    engine.work.act(plan)
    assert {**wanted, "mine.txt": before["mine.txt"]} == facts(root)
    act = engine.last_act()
    assert act is not None
    engine.take_back(act)
    assert before == facts(root)


def test_a_patch_for_other_files(engine: Engine, root: Path) -> None:
    """If the repository never had the patch's base, nothing is guessed and the error says what to do."""
    run, tree = in_worktree(engine)
    (tree / "a.txt").write_text("changed\n")
    patch = lose_all_but_the_patch(engine, run, tree)
    blob = git(root, "rev-parse", "HEAD:a.txt")
    patch.write_bytes(patch.read_bytes().replace(blob.encode(), b"1" * 40))
    with pytest.raises(SubdeckError, match=f"only the patch of scout {run.meta.short_id} is left") as caught:
        engine.work.plan(APPLY, run)
    assert "git apply --reject" in caught.value.hint


def test_nothing_is_written_through_a_link(engine: Engine, root: Path, tmp_path: Path) -> None:
    """Nothing is written behind a directory that has become a link."""
    (root / "sub").mkdir()
    (root / "sub" / "one").write_text("one\n")
    commit_all(root)
    run, tree = in_worktree(engine)
    (tree / "sub" / "one").write_text("theirs\n")
    (tree / "sub" / "two").write_text("theirs\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one").write_text("outside\n")
    shutil.rmtree(root / "sub")
    (root / "sub").symlink_to(outside)
    plan = engine.work.plan(APPLY, run)
    assert plan.refusal
    assert ["one"] == os.listdir(outside) and "outside\n" == (outside / "one").read_text()


@pytest.mark.parametrize(
    ("mine", "refusal"),
    [
        (lambda root: (root / "ignored").write_text("mine\n"), "in the way, and untracked by git: ignored"),
        (lambda root: (root / "a.txt").unlink(), "conflict in 1 file: a.txt"),
        (lambda root: (root / "new").write_text("mine\n"), "conflict in 1 file: new"),
        (lambda root: (root / "new").mkdir() or (root / "new" / "ignored").write_text("mine\n"), "in the way"),
    ],
    ids=["ignored", "deleted", "untracked", "directory"],
)
def test_what_is_in_the_way_stays(engine: Engine, root: Path, mine: Callable[[Path], object], refusal: str) -> None:
    """No conflicting file of the user is overwritten, tracked or not; then nothing is written."""
    run, tree = in_worktree(engine)
    (tree / "a.txt").write_text("theirs\n")
    (tree / "new").write_text("theirs\n")
    (tree / "ignored").write_text("theirs\n")
    git(tree, "add", "-f", "ignored")
    git(tree, "commit", "-q", "-m", "ignored")
    mine(root)
    before = facts(root)
    plan = engine.work.plan(APPLY, run)
    assert refusal in plan.refusal
    assert before == facts(root)


@pytest.mark.parametrize("is_directory", [False, True])
def test_what_is_in_the_way_of_an_undo_stays(engine: Engine, root: Path, is_directory: bool) -> None:
    """An undo that would overwrite the user's new ignored file writes nothing; once that is removed, the undo restores
    all files and keeps the user's later edits.
    """
    (root / "ignored").write_text("of the project\n")
    git(root, "add", "-f", "ignored")
    git(root, "commit", "-q", "-m", "ignored")
    run, tree = in_worktree(engine)
    (tree / "ignored").unlink()
    (tree / "a.txt").write_text("theirs\n")
    before = facts(root)
    engine.work.act(engine.work.plan(APPLY, run))
    git(root, "rm", "-q", "--cached", "ignored")
    way = root / "ignored"
    if is_directory:
        way.mkdir()
    mine = way / "ignored" if is_directory else way
    mine.write_text("mine\n")
    now = facts(root)
    act = engine.last_act()
    assert act is not None
    with pytest.raises(SubdeckError, match="in the way"):
        engine.take_back(act)
    assert now == facts(root)
    assert act == engine.last_act()
    mine.unlink()
    if is_directory:
        way.rmdir()
    (root / "more.txt").write_text("mine\n")
    engine.take_back(act)
    assert before | {"more.txt": facts(root)["more.txt"]} == facts(root)


def test_submodules_are_told(engine: Engine, root: Path, tmp_path: Path) -> None:
    """A submodule stays unchanged, with a note, and the rest is applied."""
    other = make_repository(tmp_path / "other")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "module")
    commit_all(root)
    run, tree = in_worktree(engine)
    (other / "more").touch()
    commit_all(other)
    git(tree, "update-index", "--cacheinfo", f"160000,{git(other, 'rev-parse', 'HEAD')},module")
    git(tree, "commit", "-q", "-m", "module")
    (tree / "a.txt").write_text("theirs\n")
    plan = engine.work.plan(APPLY, run)
    assert "submodule module is not changed" in plan.words
    engine.work.act(plan)
    assert " M a.txt" == git(root, "status", "--porcelain")


def test_ten_one_after_the_other(engine: Engine, root: Path) -> None:
    """Ten runs that changed one file in different places are all applied, and undone in reverse order."""
    (root / "long.txt").write_text("".join(f"line {number}\n" for number in range(100)))
    commit_all(root)
    runs: list[RunSnapshot] = []
    for number in range(10):
        run, tree = in_worktree(engine)
        text = (tree / "long.txt").read_text().replace(f"line {number * 10}\n", f"LINE {number * 10}\n")
        (tree / "long.txt").write_text(text)
        runs.append(run)
    random.Random(7).shuffle(runs)
    states = [(root / "long.txt").read_text()]
    for run in runs:
        engine.work.act(engine.work.plan(APPLY, run))
        states.append((root / "long.txt").read_text())
    assert 10 == states[-1].count("LINE")
    for state in states[-2::-1]:
        act = engine.last_act()
        assert act is not None
        engine.take_back(act)
        assert state == (root / "long.txt").read_text()
    assert engine.last_act() is None and "" == git(root, "status", "--porcelain")
