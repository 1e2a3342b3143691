"""Work on worktrees may be killed at each step: no work is lost, and the leftovers are found and removed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from msgspec import Struct
from subdeck.core.engine import Engine
from subdeck.core.run.changes import Changes
from subdeck.core.run.model import RunMeta
from subdeck.core.work import deletion, snapshots, worktrees
from subdeck.core.work._worktree_state import WorkState
from subdeck.core.work.operation import APPLY, DISCARD, Act
from subdeck.core.work.records import work_dirs

from tests.factories import make_finished, make_meta, open_engine, run_to_end
from tests.killing import deaths
from tests.repositories import commit, git, make_repository, make_worktree, pinned

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


class Scene(Struct):
    """A run with a worktree, in its own repository."""

    engine: Engine
    run_id: str
    tree: Path
    before: list[str]
    """The repository's content before there was a worktree."""

    @property
    def root(self) -> Path:
        return Path(self.engine.project.root)

    @property
    def branch(self) -> str:
        return f"subdeck/scout-{self.run_id[-6:]}"


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(make_repository(project_dir))


def make_scene(engine: Engine) -> Scene:
    before = pinned(Path(engine.project.root))
    meta, tree = make_worktree(engine.project)
    return Scene(engine, meta.run_id, tree, before)


def locks(scene: Scene) -> list[Path]:
    return list((scene.root / ".git").rglob("*.lock"))


def assert_nothing_is_left(scene: Scene) -> None:
    """Assert that branch, worktree and all their data were removed."""
    assert scene.before == pinned(scene.root)
    assert [] == locks(scene)
    assert [] == [entry for directory in work_dirs(scene.engine.project) for entry in os.listdir(directory)]


def sweep(scene: Scene | Recorded) -> None:
    """Purge the trash and orphaned work, as the app does a day later."""
    scene.engine.delete([run.run_id for run in scene.engine.snapshots()])
    scene.engine.purge(scene.engine.deleted())
    for directory in work_dirs(scene.engine.project):
        os.utime(directory, (0, 0))
    scene.engine.purge()


def test_deleting_what_changed_nothing(engine: Engine) -> None:
    """A deletion killed at any step leaves nothing that a later one would not remove."""
    for scene in deaths(lambda: make_scene(engine), lambda scene: scene.engine.delete([scene.run_id]), every=8):
        sweep(scene)
        assert_nothing_is_left(scene)


def make_unmerged(engine: Engine) -> Scene:
    scene = make_scene(engine)
    commit(scene.tree)
    (scene.tree / "a.txt").write_text("uncommitted\n")
    return scene


def assert_work_is_there(scene: Scene) -> None:
    """Assert that commit, uncommitted change and branch are unchanged and reported as unmerged."""
    assert "uncommitted\n" == (scene.tree / "a.txt").read_text()
    assert "b" == git(scene.root, "show", f"{scene.branch}:b.txt")
    (found,) = worktrees.listed(scene.engine.project)
    assert (WorkState.UNMERGED, "") == (found.state.work, found.state.trouble)
    assert [] == locks(scene)


def test_deleting_unmerged_work(engine: Engine) -> None:
    """A deletion or restoration killed at any step does not touch the work."""

    def delete_and_restore(scene: Scene) -> None:
        scene.engine.delete([scene.run_id])
        scene.engine.restore([scene.run_id])

    for scene in deaths(lambda: make_unmerged(engine), delete_and_restore, every=37):
        assert_work_is_there(scene)
        deletion.delete(engine.project, [scene.run_id])
        deletion.purge(engine.project, [scene.run_id])


def test_purging_unmerged_work(engine: Engine) -> None:
    """After a purge killed at any step the rest of the work is found and can be removed."""

    def prepare() -> Scene:
        scene = make_unmerged(engine)
        scene.engine.delete([scene.run_id])
        return scene

    for scene in deaths(prepare, lambda scene: scene.engine.purge([scene.run_id]), every=47):
        for found in worktrees.listed(scene.engine.project):
            worktrees.remove(found)
        sweep(scene)
        assert_nothing_is_left(scene)


def test_mending(engine: Engine) -> None:
    """A repair killed at any step does no harm, and the next one completes it."""

    def prepare() -> Scene:
        scene = make_unmerged(engine)
        shutil.rmtree(scene.root / ".git" / "worktrees")
        return scene

    def repair(scene: Scene) -> None:
        from subdeck.core.work.worktrees import repair

        for found in worktrees.listed(scene.engine.project):
            repair(scene.engine.project, found)

    for scene in deaths(prepare, repair, every=47):
        assert "uncommitted\n" == (scene.tree / "a.txt").read_text()
        repair(scene)
        assert_work_is_there(scene)
        assert " M a.txt" == git(scene.tree, "status", "--porcelain")
        deletion.delete(scene.engine.project, [scene.run_id])
        deletion.purge(scene.engine.project, [scene.run_id])
        git(scene.root, "worktree", "prune")
        assert_nothing_is_left(scene)


class Recorded(Struct):
    """A run in a repository whose changes are recorded."""

    engine: Engine
    meta: RunMeta
    before: tuple[list[str], str]

    @property
    def root(self) -> Path:
        return Path(self.engine.project.root)

    def held(self) -> tuple[list[str], str]:
        return pinned(self.root), git(self.root, "count-objects", "-v")

    def record(self) -> Changes:
        """Record like a wrapper, with an agent's changes in between."""
        run_dir = self.engine.project.run_dir(self.meta.run_id)
        snapshots.begin(self.meta, run_dir, str(self.root))
        (self.root / "a.txt").write_text("changed\n")
        return snapshots.finish(self.meta, run_dir, str(self.root))


def test_recording(engine: Engine) -> None:
    """Recording killed at any step does not change the repository, and its data are removed with the run."""

    def prepare() -> Recorded:
        root = Path(engine.project.root)
        meta = make_finished(engine.project, make_meta(cwd=str(root)))
        return Recorded(engine, meta, (pinned(root), git(root, "count-objects", "-v")))

    for scene in deaths(prepare, lambda scene: scene.record(), every=29):
        assert scene.before == scene.held()
        (scene.root / "a.txt").write_text("one\ntwo\nthree\n")
        changes = Recorded(
            scene.engine, make_finished(scene.engine.project, make_meta(cwd=str(scene.root))), scene.before
        ).record()
        assert (1, 1, 3, "") == (changes.files, changes.added, changes.removed, changes.note)
        sweep(scene)
        assert [] == list(work_dirs(scene.engine.project))
        assert scene.before == scene.held()


def test_applying(engine: Engine) -> None:
    """An apply killed at any step is on the stack, and undo keeps the user's files."""
    root = Path(engine.project.root)
    run = run_to_end(engine, "put a.txt changed\\n", "put new.txt new\\n", "answer ok")
    git(root, "checkout", "-q", "a.txt")
    (root / "new.txt").unlink()
    (root / "mine.txt").write_text("mine\n")
    git(root, "add", "mine.txt")

    def held() -> dict[str, str]:
        return {name: (root / name).read_text() for name in sorted(os.listdir(root)) if (root / name).is_file()}

    before, index = held(), (root / ".git" / "index").read_bytes()

    def assert_can_be_taken_back() -> None:
        act = engine.last_act()
        assert act is not None or before == held()
        if act is not None:
            engine.take_back(act)
        assert before == held()
        assert index == (root / ".git" / "index").read_bytes()
        assert [] == list((root / ".git").rglob("*.lock"))

    def apply_it() -> Act:
        return engine.work.act(engine.work.plan(APPLY, run))

    for _ in deaths(lambda: None, lambda _: apply_it(), every=47):
        assert_can_be_taken_back()
    for _ in deaths(apply_it, engine.take_back, every=47):
        assert_can_be_taken_back()


def test_discarding(engine: Engine) -> None:
    """After a discard killed at any step the worktree is restored completely, with its uncommitted files."""

    def discard_it(scene: Scene) -> None:
        (run,) = engine.snapshots([scene.run_id])
        engine.work.act(engine.work.plan(DISCARD, run))

    for scene in deaths(lambda: make_unmerged(engine), discard_it, every=61):
        while act := engine.last_act():
            engine.take_back(act)
        assert_work_is_there(scene)
        deletion.delete(engine.project, [scene.run_id])
        deletion.purge(engine.project, [scene.run_id])
        assert_nothing_is_left(scene)
