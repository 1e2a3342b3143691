"""An apply or merge may be killed at each step: it is on the stack, can be undone, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct, structs
from subdeck.core.engine import Engine
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work import acts
from subdeck.core.work.operation import APPLY, COMMIT, DISCARD, MERGE, SAVE, SQUASH, ActKind

from tests.factories import open_engine
from tests.killing import deaths
from tests.repositories import commit, git, kept, make_repository, make_worktree

pytestmark = pytest.mark.processes


class Scene(Struct):
    engine: Engine
    run: RunSnapshot
    tree: Path

    @property
    def root(self) -> Path:
        return Path(self.engine.project.root)


def scene_at(directory: Path) -> Scene:
    engine = open_engine(make_repository(directory, b_txt="begin\n"))
    meta, tree = make_worktree(engine.project)
    commit(tree, "new.txt")
    (tree / "b.txt").write_text("theirs\n")
    (run,) = engine.snapshots((meta.run_id,))
    (Path(engine.project.root) / "a.txt").write_text("mine\n")
    return Scene(engine, run, tree)


def state(scene: Scene) -> list[str]:
    """Return the files of user and run, in every place."""
    root, tree = scene.root, scene.tree
    return [
        *(
            git(root, "rev-parse", "HEAD"),
            git(root, "status", "--porcelain"),
            git(root, "branch", "--format=%(refname)"),
        ),
        *((root / "a.txt").read_text(), (root / "b.txt").read_text(), str((root / "new.txt").exists())),
        *(git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain"), (tree / "b.txt").read_text()),
    ]


def apply(scene: Scene) -> Callable[[], object]:
    plan = scene.engine.work.plan(APPLY, scene.run)
    return lambda: scene.engine.work.act(plan)


def merge(scene: Scene) -> Callable[[], object]:
    plan = scene.engine.work.plan(MERGE, scene.run)
    return lambda: scene.engine.work.act(plan)


def pick(scene: Scene) -> Callable[[], object]:
    plan = scene.engine.work.plan(SQUASH, scene.run)
    return lambda: scene.engine.work.act(plan)


def keep(scene: Scene) -> Callable[[], object]:
    commit_work(scene)()
    return lambda: scene.engine.work.act(scene.engine.work.plan(SAVE, scene.run, name="kept/by-me"))


def commit_work(scene: Scene) -> Callable[[], object]:
    plan = scene.engine.work.plan(COMMIT, scene.run)
    return lambda: scene.engine.work.act(plan)


def discard(scene: Scene) -> Callable[[], object]:
    plan = scene.engine.work.plan(DISCARD, scene.run)
    return lambda: scene.engine.work.act(plan)


EVERY = 41
"""The test is killed at one step in this many, because each costs a repository."""


@pytest.mark.parametrize("plan", [apply, merge, pick, commit_work, keep, discard], ids=lambda plan: plan.__name__)
def test_killed_on_the_way(project_dir: Path, plan: Callable[[Scene], Callable[[], object]]) -> None:
    """An act killed at any step can be undone completely from the stack, and done again."""
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    first = scene = scene_at(project_dir / "scene")
    before = state(first)
    put_back = kept(first.root, Path(os.environ["HOME"]))

    def prepare() -> tuple[Scene, Callable[[], object]]:
        put_back()
        scene = structs.replace(first, engine=Engine.open(str(first.root), session="operator"))
        return scene, plan(scene)

    for scene, _ in deaths(prepare, lambda prepared: prepared[1](), every=EVERY):
        while found := scene.engine.last_act():
            scene.engine.take_back(found)
        assert before == state(scene)
        assert [] == list((scene.root / ".git").rglob("*.lock"))
    plan(scene)()
    assert before != (state(scene) if scene.tree.exists() else [])


@pytest.mark.parametrize(
    "torn", [b"", b"the", None, b"begin\n", b"theirs\n"], ids=["empty", "half", "missing", "old", "new"]
)
def test_a_file_that_was_being_written(project_dir: Path, torn: bytes | None) -> None:
    """A file half written by git at the kill is recognized as not the user's and restored."""
    scene = scene_at(project_dir)
    before = state(scene)
    apply(scene)()
    (done,) = acts.read(scene.engine.project)
    assert ActKind.APPLY is done.kind and not done.begun
    # The act on the stack is unfinished, and the file is half written as after a kill.
    begun = Path(scene.engine.project.root)
    with acts._changing(scene.engine.project) as changing:  # pyright: ignore[reportPrivateUsage]
        changing[:] = [structs.replace(one, begun=True) for one in changing]
    (begun / "b.txt").unlink()
    if torn is not None:
        (begun / "b.txt").write_bytes(torn)
    found = scene.engine.last_act()
    assert found is not None and found.begun
    scene.engine.take_back(found)
    assert before == state(scene)
