"""Applying runs' changes to the working tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work.apply import ApplyPlan
from subdeck.core.work.operation import APPLY, MERGE

from tests.core.command_line import subdeck
from tests.factories import open_engine, run_to_end
from tests.repositories import git, make_repository, make_worktree

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers", "forked_commands")]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(make_repository(project_dir, b_txt="".join(f"line {n}\n" for n in range(1, 41))))


@pytest.fixture
def root(engine: Engine) -> Path:
    return Path(engine.project.root)


def in_worktree(engine: Engine) -> tuple[RunSnapshot, Path]:
    """Return a finished run and its worktree."""
    meta, tree = make_worktree(engine.project)
    (run,) = engine.snapshots((meta.run_id,))
    return run, tree


def status(root: Path) -> str:
    return git(root, "status", "--porcelain", "--no-renames")


def undo(engine: Engine) -> str:
    act = engine.last_act()
    assert act is not None
    return engine.take_back(act).outcome


def test_a_worktree_is_applied(engine: Engine, root: Path) -> None:
    """Committed and uncommitted work is applied unstaged beside the user's changes, and undo removes only that."""
    run, tree = in_worktree(engine)
    (tree / "b.txt").write_text((tree / "b.txt").read_text().replace("line 2\n", "line two\n"))
    git(tree, "commit", "-q", "-am", "two")
    (tree / "a.txt").unlink()
    (tree / "new.txt").write_text("new\n")
    (root / "b.txt").write_text((root / "b.txt").read_text().replace("line 39\n", "line thirty-nine\n"))
    (root / "staged.txt").write_text("mine\n")
    git(root, "add", "staged.txt")
    index, mine = git(root, "ls-files", "-s"), status(root)
    plan = engine.work.plan(APPLY, run)
    assert "3 files +2 −4" in plan.words and not plan.refusal
    assert mine == status(root)
    engine.work.act(plan)
    assert (index, " D a.txt\n M b.txt\nA  staged.txt\n?? new.txt") == (git(root, "ls-files", "-s"), status(root))
    assert {"line two", "line thirty-nine"} <= set((root / "b.txt").read_text().splitlines())
    (root / "b.txt").write_text((root / "b.txt").read_text().replace("line 20\n", "line twenty\n"))
    assert f"undid applying scout {run.meta.short_id}" == undo(engine)
    assert mine == status(root) and "line two" not in (root / "b.txt").read_text()
    assert {"line twenty", "line thirty-nine"} <= set((root / "b.txt").read_text().splitlines())
    assert index == git(root, "ls-files", "-s") and engine.last_act() is None


def test_conflicts_are_shown_and_nothing_is_done(engine: Engine, root: Path) -> None:
    """Each conflicting file is named, and the others can be applied without it."""
    run, tree = in_worktree(engine)
    (tree / "a.txt").write_text("theirs\n")
    (tree / "new.txt").write_text("new\n")
    (root / "a.txt").write_text("mine\n")
    plan = engine.work.plan(APPLY, run)
    assert ["a.txt"] == [conflict.path for conflict in plan.conflicts]
    assert "a.txt (Merge conflict in a.txt)" in plan.words and "othing was written" in plan.words
    with pytest.raises(SubdeckError, match="your own changes conflict"):
        engine.work.act(plan)
    assert " M a.txt" == status(root) and engine.last_act() is None
    engine.work.act(engine.work.plan(APPLY, run, files=["new.txt"]))
    assert " M a.txt\n?? new.txt" == status(root)


def test_hunks(engine: Engine, root: Path) -> None:
    """Some hunks of a file can be applied, even below skipped ones."""
    run, tree = in_worktree(engine)
    lines = (tree / "b.txt").read_text()
    for old, new in (("line 2\n", "2a\n2b\n2c\n"), ("line 20\n", "twenty\n"), ("line 38\n", "")):
        lines = lines.replace(old, new)
    (tree / "b.txt").write_text(lines)
    (tree / "a.txt").write_text("left alone\n")
    plan = engine.work.plan(APPLY, run, files=[], hunks={"b.txt": [2, 3]})
    assert isinstance(plan, ApplyPlan) and "1 file +1 −2" == plan.changes.words
    engine.work.act(plan)
    after = (root / "b.txt").read_text()
    assert "twenty\n" in after and "line 38" not in after and "line 2\n" in after and " M b.txt" == status(root)
    with pytest.raises(SubdeckError, match="no hunk 4: the file has 3 hunks"):
        engine.work.plan(APPLY, run, files=[], hunks={"b.txt": [4]})
    assert "has not changed nothing.txt" in engine.work.plan(APPLY, run, files=["nothing.txt"]).refusal


def test_a_run_in_the_shared_directory(engine: Engine, root: Path) -> None:
    """A run's changes in the shared directory can be undone, applied again, and applied to another working tree."""
    run = run_to_end(engine, "edit a.txt two 2", "save sub/new.txt x\\n", "answer Done.")
    assert "all changes are already there" == engine.work.plan(APPLY, run).refusal
    engine.work.act(engine.work.plan(APPLY, run, reverse=True))
    assert "" == status(root)
    engine.work.act(engine.work.plan(APPLY, run))
    assert " M a.txt\n?? sub/" == status(root)
    other = root.parent / "other"
    git(root, "worktree", "add", "-q", str(other))
    engine.work.act(engine.work.plan(APPLY, run, to=str(other)))
    assert " M a.txt\n?? sub/" == status(other)


def test_it_does_what_it_said_or_nothing(engine: Engine, root: Path) -> None:
    """Files changed between plan and act are not overwritten, and the act leaves no trace."""
    run, tree = in_worktree(engine)
    (tree / "a.txt").write_text("theirs\n")
    plan = engine.work.plan(APPLY, run)
    (root / "a.txt").write_text("mine\n")
    with pytest.raises(SubdeckError, match="nothing was applied: changed by another program: a"):
        engine.work.act(plan)
    assert "mine\n" == (root / "a.txt").read_text() and engine.last_act() is None


def test_the_command_line(engine: Engine, root: Path) -> None:
    """`apply` prints its plan and asks; `undo` names the act that it reverts."""
    run, tree = in_worktree(engine)
    (tree / "a.txt").write_text("theirs\n")
    short = run.meta.short_id
    done = subdeck("apply", short, "--dry-run", cwd=root)
    assert 0 == done.code and "modified a.txt" in done.out and "" == status(root)
    assert 2 == subdeck("apply", short, cwd=root).code
    document = subdeck("apply", short, "--yes", "--json", cwd=root).document
    assert (True, "", ["a.txt"]) == (
        document["applied"],
        document["refusal"],
        [file["path"] for file in document["files"]],
    )
    assert " M a.txt" == status(root)
    assert 1 == subdeck("apply", short, "--yes", cwd=root).code
    assert f"applying scout {short}" in subdeck("undo", "--dry-run", cwd=root).out
    child = subdeck("undo", "--yes", cwd=root, PI_SUBAGENTS_CHILD="1")
    assert 2 == child.code and "an agent cannot" in child.err
    assert 0 == subdeck("undo", "--yes", cwd=root).code
    assert "" == status(root)
    assert "an agent cannot" in subdeck("apply", short, "--yes", cwd=root, PI_SUBAGENTS_CHILD="1").err


def test_from_launch_to_the_working_tree(engine: Engine, root: Path) -> None:
    """A run's work in its worktree is applied to files that were uncommitted at its launch."""
    (root / "a.txt").write_text("one\ntwo\nthree\nmine\n")
    run = run_to_end(engine, "edit a.txt two 2", "save sub/new.txt x\\n", "answer Done.", worktree=True)
    before = status(root)
    assert " M a.txt" == before and "one\ntwo" in (root / "a.txt").read_text()
    git(root, "config", "user.name", "Me")
    git(root, "config", "user.email", "me@example.org")
    assert "uncommitted changes in the same files: a.txt" in engine.work.plan(MERGE, run).refusal
    engine.work.act(engine.work.plan(APPLY, run))
    assert "one\n2\nthree\nmine\n" == (root / "a.txt").read_text() and " M a.txt\n?? sub/" == status(root)
    assert () == engine.unmerged([run.run_id])
    undo(engine)
    assert before == status(root) and 1 == len(engine.unmerged([run.run_id]))
