"""Deleting runs with worktrees: no work is lost, and nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import structs
from subdeck.core import paths
from subdeck.core.config.settings import Retention
from subdeck.core.engine import Engine
from subdeck.core.project import trash
from subdeck.core.work import acts, deletion, worktrees
from subdeck.core.work._worktree_state import WorkState
from subdeck.core.work.operation import DISCARD
from subdeck.core.work.records import Taken, read_record, work_dirs, write_record

from tests.core.command_line import subdeck
from tests.factories import make_finished, make_meta, open_engine
from tests.repositories import commit, git, make_repository, make_worktree, pinned

pytestmark = pytest.mark.processes


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(make_repository(project_dir))


def stand_of(engine: Engine, run_id: str) -> tuple[WorkState, str]:
    worktree = worktrees.of_run(engine.project, run_id)
    assert worktree is not None
    return worktree.state.work, worktree.state.words


def test_what_changed_nothing_leaves_nothing(engine: Engine) -> None:
    """An unchanged run goes with its worktree and branch, and the repository is as before."""
    root = Path(engine.project.root)
    before = pinned(root)
    meta, tree = make_worktree(engine.project)
    assert (WorkState.UNCHANGED, "nothing was changed") == stand_of(engine, meta.run_id)
    engine.delete([meta.run_id])
    assert before == pinned(root) and not tree.exists()
    engine.purge([meta.run_id])
    assert [] == list(work_dirs(engine.project))


@pytest.mark.parametrize("how", ["committed", "uncommitted", "untracked", "elsewhere", "detached"])
def test_unmerged_work_waits_in_the_trash(engine: Engine, how: str) -> None:
    """Unmerged work stays with its branch until the run is purged, and undo restores it completely."""
    root = Path(engine.project.root)
    before = pinned(root)
    meta, tree = make_worktree(engine.project)
    match how:
        case "committed":
            commit(tree)
        case "uncommitted":
            (tree / "a.txt").write_text("changed\n")
        case "untracked":
            (tree / "new.txt").write_text("new\n")
        case "elsewhere":
            commit(tree)
            git(tree, "checkout", "-q", "--detach", "main")
        case _:
            git(tree, "checkout", "-q", "--detach")
            commit(tree)
    assert WorkState.UNMERGED is stand_of(engine, meta.run_id)[0]
    kept, (found,) = pinned(root), deletion.unmerged(engine.project, [meta.run_id])
    assert f"subdeck/scout-{meta.short_id}: " in found.words
    engine.delete([meta.run_id])
    assert kept == pinned(root) and tree.exists()
    engine.restore([meta.run_id])
    assert WorkState.UNMERGED is stand_of(engine, meta.run_id)[0]
    engine.delete([meta.run_id])
    engine.purge([meta.run_id])
    assert before == pinned(root) and not tree.exists()
    assert [] == list(work_dirs(engine.project))


@pytest.mark.parametrize("how", ["merged", "picked", "squashed", "another branch"])
def test_merged_work_leaves_nothing(engine: Engine, how: str) -> None:
    """Work that is in HEAD in any form, or in another branch, is not kept any longer."""
    root = Path(engine.project.root)
    meta, tree = make_worktree(engine.project)
    tip = commit(tree)
    commit(root, "beside.txt")
    match how:
        case "merged":
            git(root, "merge", "-q", "--no-edit", tip)
        case "picked":
            git(root, "cherry-pick", tip)
        case "squashed":
            git(root, "merge", "-q", "--squash", tip)
            git(root, "commit", "-q", "-m", "squashed")
        case _:
            git(root, "branch", "mine", tip)
    assert WorkState.TAKEN is stand_of(engine, meta.run_id)[0]
    engine.delete([meta.run_id])
    assert not tree.exists()
    assert f"scout-{meta.short_id}" not in git(root, "for-each-ref")


def test_the_branch_of_another_run_is_no_safe_place(engine: Engine) -> None:
    """Work on another run's branch is not safe, because both branches may go."""
    meta, tree = make_worktree(engine.project)
    make_worktree(engine.project, base=commit(tree))
    assert WorkState.UNMERGED is stand_of(engine, meta.run_id)[0]


def test_what_was_applied_is_taken_until_more_is_changed(engine: Engine) -> None:
    """Work counts as applied by the tree at that time; a later change is unmerged again."""
    meta, tree = make_worktree(engine.project)
    tip = commit(tree)
    directory = paths.work_dir(engine.project, meta.run_id)
    record = read_record(directory)
    assert record is not None
    write_record(
        directory, structs.replace(record, taken=Taken.APPLIED, taken_tree=git(tree, "rev-parse", f"{tip}^{{tree}}"))
    )
    assert (WorkState.TAKEN, "applied") == stand_of(engine, meta.run_id)
    (tree / "b.txt").write_text("later\n")
    assert WorkState.UNMERGED is stand_of(engine, meta.run_id)[0]


def test_retention_takes_no_unmerged_work(engine: Engine) -> None:
    """Automatic retention keeps runs with unmerged work, and counts them."""
    safe, _ = make_worktree(engine.project)
    meta, tree = make_worktree(engine.project)
    commit(tree)
    selection, cleaned = deletion.apply_retention(engine.project, Retention(keep=0), 0.0)
    assert ((safe.run_id,), 1, 0) == (cleaned.moved, selection.unmerged, selection.needed)
    assert [meta.run_id] == [run.run_id for run in engine.snapshots()]


def test_the_size_of_a_worktree_counts(engine: Engine) -> None:
    """The size of a run includes its worktree."""
    meta, tree = make_worktree(engine.project)
    (tree / "ignored").write_bytes(b"x" * 3_000_000)
    stock = deletion.read_stock(engine.project)
    assert stock.size > 3_000_000 > trash.read_stock(engine.project).size
    assert frozenset() == stock.unmerged
    engine.delete([meta.run_id])
    assert deletion.read_stock(engine.project).trash_size < 3_000_000


def test_what_was_discarded_is_counted_apart(engine: Engine) -> None:
    """A discarded worktree counts as used space, at its place, until it cannot be restored."""
    meta, tree = make_worktree(engine.project)
    (tree / "kept").write_bytes(b"x" * 3_000_000)
    (run,) = engine.snapshots([meta.run_id])
    engine.work.act(engine.work.plan(DISCARD, run))
    stock = deletion.read_stock(engine.project)
    assert (1, 0) == (stock.discarded, stock.worktrees) and stock.discarded_size > 3_000_000
    said = "1 discarded worktree, 2.9 MB, is kept for undo for a day"
    root = Path(engine.project.root)
    for words in (("worktrees",), ("clean", "--keep", "0", "--dry-run")):
        assert said in subdeck(*words, cwd=root).out
    act = engine.last_act()
    assert act is not None
    engine.take_back(act)
    assert 0 == deletion.read_stock(engine.project).discarded


def test_a_follow_up_keeps_the_worktree(engine: Engine) -> None:
    """A worktree used by a follow-up run stays until its last run is deleted."""
    root, before = Path(engine.project.root), pinned(Path(engine.project.root))
    meta, tree = make_worktree(engine.project)
    record = read_record(paths.work_dir(engine.project, meta.run_id))
    assert record is not None
    follow_up = make_finished(engine.project, make_meta(preset="scout"))
    mine = structs.replace(record, run_id=follow_up.run_id, host=meta.run_id)
    write_record(paths.work_dir(engine.project, follow_up.run_id), mine)
    engine.delete([meta.run_id])
    engine.purge([meta.run_id])
    assert tree.exists()
    engine.delete([follow_up.run_id])
    assert not tree.exists()
    engine.purge([follow_up.run_id])
    assert (before, []) == (pinned(root), list(work_dirs(engine.project)))


def test_nobody_loses_the_ground_under_his_feet(engine: Engine) -> None:
    """A worktree with a running process is not removed, and is found again."""
    meta, tree = make_worktree(engine.project)
    lock = worktrees.files.open_lock(os.path.join(paths.work_dir(engine.project, meta.run_id), worktrees.LOCK))
    worktrees.files.lock(lock, shared=True)
    engine.delete([meta.run_id])
    assert tree.exists()
    os.close(lock)
    engine.purge([meta.run_id])
    assert not tree.exists()


def test_a_foreign_run_takes_no_work_along(engine: Engine) -> None:
    """Deleting an untrusted run with the id of one of our runs does not delete our work."""
    meta, tree = make_worktree(engine.project)
    file = Path(engine.project.run_dir(meta.run_id), paths.META)
    file.write_bytes(file.read_bytes().replace(b"answer ok", b"answer no"))
    engine.delete([meta.run_id])
    engine.purge([meta.run_id])
    assert tree.exists()


def test_what_nobody_has_any_more_is_swept(engine: Engine) -> None:
    """The leftovers of a lost run are removed after a day unless they hold unmerged work."""
    root, before = Path(engine.project.root), pinned(Path(engine.project.root))
    safe, safe_tree = make_worktree(engine.project)
    meta, tree = make_worktree(engine.project)
    commit(tree)
    store = Path(paths.work_dir(engine.project, paths.new_run_id()), "objects")
    store.mkdir(parents=True)
    for run_id in (safe.run_id, meta.run_id):
        trash.delete(engine.project, [run_id])
        trash.purge(engine.project, [run_id])
    engine.purge()
    assert safe_tree.exists() and store.exists()
    base = Path(paths.works_dir(engine.project), ".base-0123")
    base.mkdir()
    act = acts.record(engine.project, acts.ActKind.APPLY, "scout 4ae0bd", {})
    old = acts.record(engine.project, acts.ActKind.DISCARD, "scout 7f3a9c", {})
    stack = Path(paths.works_dir(engine.project), "undo.jsonl")
    stack.write_text(stack.read_text().replace(old.at, "2026-01-01T00:00:00.000Z"))
    for name in (act.id, old.id, "dropped"):
        Path(acts.undo_directory(engine.project, name)).mkdir(parents=True)
    for directory in (*work_dirs(engine.project), base):
        os.utime(directory, (0, 0))
    engine.purge()
    assert [act.id] == [one.id for one in acts.read(engine.project) if one.kind is not acts.ActKind.DELETE_RUNS]
    assert [act.id] == os.listdir(os.path.dirname(acts.undo_directory(engine.project, act.id)))
    assert not base.exists()
    assert not safe_tree.exists() and not store.exists() and tree.exists()
    (found,) = worktrees.listed(engine.project)
    assert (meta.run_id, worktrees.RunState.LOST) == (found.run_id, found.run)
    worktrees.remove(found)
    assert before == pinned(root)
