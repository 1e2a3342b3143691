"""Cleaned-up runs leave nothing new in the repository or the state directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run.describe import doing
from subdeck.core.run.model import WorktreeFrom
from subdeck.core.work import acts, deletion

from tests.factories import open_engine, request
from tests.repositories import git, make_repository, pinned

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

RUNS = 12


def remembered() -> set[str]:
    """Return all files in the user's state except the key, the ledger, and single files per project or repository."""
    state = Path(paths.state_file())
    one_each = {"key", "spend", ".locks", "undo.jsonl"}
    names = (path.relative_to(state) for path in state.rglob("*") if path.is_file())
    return {str(name) for name in names if not one_each.intersection(name.parts)}


def objects(root: Path) -> str:
    """Return a repository's number of objects and its missing or unneeded references."""
    return git(root, "count-objects", "-v") + git(root, "fsck", "--unreachable", "--no-progress")


def run_all(engine: Engine, **options: object) -> list[str]:
    """Run some agents at once; each writes its own file."""
    wanted = [request(f"put new-{number}.txt {number}\\n", "answer ok", **options) for number in range(RUNS)]
    runs = engine.launch(wanted, background=True)
    run_ids = [run.run_id for run in runs]
    assert all(run.has_ended for run in engine.wait(run_ids, timeout=60))
    return run_ids


def test_runs_in_the_working_tree_leave_only_what_they_wrote(project_dir: Path) -> None:
    """Purged runs in the working tree leave only their written files: no object, no ref, no store."""
    root = make_repository(project_dir)
    engine = open_engine(root)
    before = pinned(root), objects(root), remembered()
    run_ids = run_all(engine)
    engine.delete(run_ids)
    engine.purge(run_ids)
    engine.purge()  # as on opening the app
    assert before == (pinned(root), objects(root), remembered())
    assert RUNS == len(list(root.glob("new-*.txt")))
    assert ["deleting 12 runs"] == [act.title for act in acts.read(engine.project)]


def test_runs_in_worktrees_leave_only_what_is_not_merged(project_dir: Path) -> None:
    """A clean-up keeps the branches of unmerged work; a purge removes them, and the repository and the state are as
    before.
    """
    root = make_repository(project_dir)
    (root / "a.txt").write_text("changed by a person\n")
    (root / "untracked.txt").write_text("untracked\n")
    git(root, "config", "user.name", "child")
    git(root, "config", "user.email", "child@test")
    engine = open_engine(root)

    def referred() -> list[str]:
        return sorted(git(root, "rev-list", "--objects", "--all").splitlines())

    before = pinned(root), referred(), git(root, "status", "--porcelain"), remembered()
    scripts = (
        ["answer ok"],
        ["put new.txt new\\n", "answer ok"],
        ["put new.txt new\\n", "bash git add -A && git commit -qm new", "answer ok"],
    )
    wanted = [request(*scripts[number % 3], worktree=WorktreeFrom.FILES) for number in range(RUNS)]
    run_ids = [run.run_id for run in engine.launch(wanted, background=True)]
    ended = engine.wait(run_ids, timeout=120)
    assert [("completed", "ok")] * RUNS == [(run.status, doing(run)) for run in ended]
    unmerged = {one.run_id for one in engine.unmerged(run_ids)}
    assert {run_id for number, run_id in enumerate(run_ids) if number % 3} == unmerged
    stock = deletion.read_stock(engine.project)
    assert (RUNS, unmerged) == (stock.worktrees, stock.unmerged)
    engine.delete(set(run_ids) - unmerged)
    assert len(unmerged) == len(git(root, "for-each-ref", "refs/heads/subdeck").splitlines())
    assert 1 + len(unmerged) == git(root, "worktree", "list", "--porcelain").count("worktree ")
    engine.delete(unmerged)
    engine.purge(run_ids)
    engine.purge()
    ours = paths.works_dir(engine.project)
    kept = {name for name in remembered() if name.startswith(os.path.relpath(ours, paths.state_file()) + "/.base-")}
    assert before == (
        pinned(root),
        referred(),
        git(root, "status", "--porcelain"),
        remembered() - kept,
    )
    assert "error" not in git(root, "fsck", "--no-progress")
