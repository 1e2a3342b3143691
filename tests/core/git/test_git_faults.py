"""If git fails or is killed while it writes the user's files, nothing is lost, and undo restores everything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct, structs
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work.operation import APPLY, MERGE, SQUASH

from tests.factories import open_engine
from tests.killing import deaths
from tests.repositories import commit, git, kept, make_repository, make_worktree

pytestmark = pytest.mark.processes

REAL_GIT = shutil.which("git") or ""
BIG = "".join(f"line {number} of the operator\n" for number in range(9_000))
"""Longer than git may write while it is limited."""
MOST_BLOCKS = 200
"""Limit in blocks of 512 bytes: more than an index takes, and less than `BIG`."""
SHIM = """#!/bin/sh
for word; do
    case $word in
        {command}) test -e {switch} && {{ ulimit -f {blocks}; {trap}; }} ;;
    esac
done
exec {git} "$@"
"""

EVERY = 31
"""One of this many steps of an undo is tried with a kill: each kill costs a repository."""


class Scene(Struct):
    engine: Engine
    run: RunSnapshot
    root: Path


def scene_at(directory: Path) -> Scene:
    """Make a run that has changed, added, renamed and deleted files; the user has edits and a staged file."""
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    engine = open_engine(make_repository(directory, b_txt="begin\n", big_txt=BIG, old_txt="old\n", going_txt="going\n"))
    meta, tree = make_worktree(engine.project)
    (tree / "b.txt").write_text("theirs\n")
    (tree / "big.txt").write_text(BIG.replace("operator", "agent"))
    (tree / "z.txt").write_text("last\n")
    (tree / "going.txt").unlink()
    (tree / "old.txt").rename(tree / "renamed.txt")
    commit(tree, "new.txt")
    root = Path(engine.project.root)
    (root / "a.txt").write_text("mine\n")
    (root / "staged.txt").write_text("staged\n")
    (root / "untracked.txt").write_text("untracked\n")
    (root / "ignored").write_text("ignored\n")
    git(root, "add", "staged.txt")
    (run,) = engine.snapshots((meta.run_id,))
    return Scene(engine, run, root)


def state(root: Path) -> object:
    """Return all the user has: commits, branches, index, and every file with its mode."""
    files = {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes())
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.parts and ".pi" not in path.parts
    }
    listed = (("rev-parse", "HEAD"), ("for-each-ref", "--format=%(refname) %(objectname)"), ("ls-files", "--stage"))
    return (
        files,
        [git(root, *words) for words in listed],
        git(root, "status", "--porcelain"),
        git(root, "stash", "list"),
    )


def apply(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(APPLY, scene.run))


def merge(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(MERGE, scene.run))


def pick(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(SQUASH, scene.run))


ACTS = {apply: "read-tree", merge: "merge", pick: "merge"}
"""Each action with the git command that writes its files."""


def undo(scene: Scene) -> None:
    act = scene.engine.last_act()
    assert act is not None, "nothing to undo"
    scene.engine.take_back(act)


@pytest.fixture
def hold_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bool, bool], None]:
    """Make a git command fail at a file that is too long, as on a full disk, or have the kernel kill it."""
    switch, shims = tmp_path / "held-back", tmp_path / "shims"

    def set_to(command: str, is_held: bool, is_killed: bool) -> None:
        shims.mkdir(exist_ok=True)
        trap = ":" if is_killed else "trap '' XFSZ"
        words = {"command": command, "switch": switch, "blocks": MOST_BLOCKS, "trap": trap, "git": REAL_GIT}
        (shims / "git").write_text(SHIM.format(**words))
        (shims / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}".removeprefix(f"{shims}:{shims}:"))
        switch.touch() if is_held else switch.unlink(missing_ok=True)

    return set_to


def unlock(root: Path) -> None:
    """Remove the lock of a killed git, as the error advises."""
    (root / ".git" / "index.lock").unlink(missing_ok=True)


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "full"])
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_git_fails_half_way(
    project_dir: Path, hold_back: Callable[[str, bool, bool], None], act: Callable[[Scene], object], is_killed: bool
) -> None:
    """git's partial changes are reported, and undo restores them; afterwards the action can be completed."""
    scene = scene_at(project_dir)
    before = state(scene.root)
    hold_back(ACTS[act], True, is_killed)
    with pytest.raises(SubdeckError, match="not fully") as caught:
        act(scene)
    assert "undo" in caught.value.hint
    hold_back(ACTS[act], False, is_killed)
    unlock(scene.root)
    assert before != state(scene.root), "git wrote nothing: the test holds it back too early"
    undo(scene)
    assert before == state(scene.root)
    assert scene.engine.last_act() is None
    act(scene)
    assert "agent" in (scene.root / "big.txt").read_text()


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "full"])
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_git_fails_in_an_undo(
    project_dir: Path, hold_back: Callable[[str, bool, bool], None], act: Callable[[Scene], object], is_killed: bool
) -> None:
    """An undo that git did not finish is finished by the next one, including later edits."""
    scene = scene_at(project_dir)
    before = state(scene.root)
    act(scene)
    hold_back("read-tree", True, is_killed)
    with pytest.raises(SubdeckError, match="not fully undone"):
        undo(scene)
    hold_back("read-tree", False, is_killed)
    unlock(scene.root)
    assert before != state(scene.root), "git wrote all of it: the test holds it back too late"
    undo(scene)
    assert before == state(scene.root)
    assert scene.engine.last_act() is None


def test_a_link_in_the_place_of_what_git_had_half_written(
    project_dir: Path, hold_back: Callable[[str, bool, bool], None]
) -> None:
    """Undo names and keeps the user's link in place of git's half-written file; without the link it restores all."""
    scene = scene_at(project_dir)
    before = state(scene.root)
    hold_back(ACTS[apply], True, False)
    with pytest.raises(SubdeckError, match="not fully"):
        apply(scene)
    hold_back(ACTS[apply], False, False)
    unlock(scene.root)
    big = scene.root / "big.txt"
    big.unlink(missing_ok=True)
    big.symlink_to("elsewhere")
    with pytest.raises(SubdeckError, match=r"you changed the same lines since: big\.txt"):
        undo(scene)
    assert "elsewhere" == os.readlink(big)
    big.unlink()
    undo(scene)
    assert before == state(scene.root)


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_killed_in_an_undo(project_dir: Path, act: Callable[[Scene], object]) -> None:
    """If an undo is killed at any step, the next one finishes it, and the state is as before the action."""
    scene = scene_at(project_dir / "scene")
    before = state(scene.root)
    act(scene)
    put_back = kept(scene.root, Path(os.environ["HOME"]))

    def prepare() -> Scene:
        put_back()
        return structs.replace(scene, engine=Engine.open(str(scene.root), session="operator"))

    for scene in deaths(prepare, undo, every=EVERY):
        while scene.engine.last_act():
            undo(scene)
        assert before == state(scene.root)


def test_touched_files_are_no_edits(project_dir: Path) -> None:
    """A merge is undone even if the times of its files have changed."""
    scene = scene_at(project_dir)
    before = state(scene.root)
    merge(scene)
    for name in ("b.txt", "big.txt", "new.txt"):
        os.utime(scene.root / name, (1, 1))
    undo(scene)
    assert before == state(scene.root)


@pytest.mark.parametrize("is_staged", [True, False])
def test_edited_since_a_merge(project_dir: Path, is_staged: bool) -> None:
    """Undoing a merge is refused if its files have uncommitted edits: the error names them, and they stay."""
    scene = scene_at(project_dir)
    merge(scene)
    (scene.root / "b.txt").write_text("edited\n")
    if is_staged:
        git(scene.root, "add", "b.txt")
        (scene.root / "b.txt").write_text("theirs\n")
    now = state(scene.root)
    with pytest.raises(SubdeckError, match=r"uncommitted changes in b\.txt"):
        undo(scene)
    assert now == state(scene.root)
    git(scene.root, "checkout", "HEAD", "--", "b.txt")
    undo(scene)
    assert "begin\n" == (scene.root / "b.txt").read_text()


def test_a_sparse_checkout_stays_sparse(project_dir: Path) -> None:
    """Undoing a merge checks out nothing that the user excluded from the working tree."""
    scene = scene_at(project_dir)
    git(scene.root, "stash", "-q", "--include-untracked")
    git(scene.root, "sparse-checkout", "set", "--no-cone", "/*", "!/a.txt")
    before = git(scene.root, "ls-files", "-t")
    assert "S a.txt" in before
    merge(scene)
    undo(scene)
    assert before == git(scene.root, "ls-files", "-t")
    assert not (scene.root / "a.txt").exists()
