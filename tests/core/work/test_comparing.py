"""Comparing runs: side by side, and the differences between two runs' files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.cli.compare import table_of
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.changes import ChangedFile, Changes, CheckResult, FileStatus
from subdeck.core.run.comparison import Side, answer, facts, files, is_one_task
from subdeck.core.run.model import Group, RunReason, Usage
from subdeck.core.run.snapshot import Checking, RunSnapshot
from subdeck.core.work.choose import ChoicePlan
from subdeck.core.work.operation import APPLY, CHOOSE

from tests.core.command_line import subdeck
from tests.factories import make_finished, make_meta, make_snapshot, open_engine, run_to_end
from tests.repositories import git, make_repository, make_worktree

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands", "forked_wrappers")]

NOW = datetime.now(UTC)


def side(number: int = 1, **fields: object) -> Side:
    meta = make_meta(f"20260101-00000{number}-00000{number}", task="fix the flaky test", preset="fixer")
    run = make_snapshot(meta, usage=Usage(cost=0.214, turns=8, output=3200), duration_ms=42_000, **fields)
    named = (ChangedFile("src/a.py", FileStatus.MODIFIED, 14, 3), ChangedFile("logo.png", FileStatus.ADDED))
    return Side(run=run, changes=Changes(files=2, added=14, removed=3, named=named), answer="It waits.\nOn the event.")


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(make_repository(project_dir))


def two_worktrees(engine: Engine) -> tuple[RunSnapshot, RunSnapshot, Path, Path]:
    (one, first), (other, second) = (make_worktree(engine.project) for _ in range(2))
    by_id = {run.run_id: run for run in engine.snapshots((one.run_id, other.run_id))}
    return by_id[one.run_id], by_id[other.run_id], first, second


def test_what_is_said_of_a_run() -> None:
    """A run has a line for each fact, its files with their line counts, and the beginning of its answer."""
    said = facts(side(check=CheckResult("tests", 0, 14.0)), NOW)
    assert {
        "status": "✓ completed", "check": "tests ✓ passed after 0:14", "cost": "$0.21", "time": "0:42", "turns": "8",
        "tokens": "3.2k", "model": "–", "changes": "2 files +14 −3",
    } == said  # fmt: skip
    assert [("src/a.py", "+14 −3"), ("logo.png", "")] == files(side())
    assert "It waits.\nOn the event." == answer(side())


def test_what_is_not_known_yet() -> None:
    """A running run shows its activity, a queued one nothing, and unknown costs are never guessed."""
    running = make_snapshot(status="running", activity="Reading a.py", usage=Usage(output=10, unpriced=10))
    said = facts(Side(run=running), NOW)
    assert ("● running", "?", "unknown") == (said["status"], said["cost"], said["changes"])
    assert "Reading a.py" == answer(Side(run=running))
    assert "–" == facts(Side(run=make_snapshot(status="queued")), NOW)["changes"]
    at_check = make_snapshot(make_meta(check="tests"), status="running", checking=Checking("tests", paths.now_iso()))
    assert "checking: tests 0:00" == facts(Side(run=at_check), NOW)["check"]
    stopped = make_snapshot(status="aborted", reason=RunReason.TIMEOUT, message="it took too long")
    assert ("⊘ aborted: timeout", "it took too long") == (
        facts(Side(run=stopped), NOW)["status"],
        answer(Side(run=stopped)),
    )


@pytest.mark.parametrize("width", [80, 120, 40])
def test_table(width: int) -> None:
    """No line is wider than the terminal; columns without room move below."""
    sides = [side(number) for number in (1, 2, 3)]
    lines = table_of(sides, width, NOW)
    assert max(map(len, lines)) <= width
    heads = [line for line in lines if "fixer" in line]
    assert (3 if width == 40 else 1) == len(heads)
    assert "different tasks" not in "".join(lines)
    strange = Side(run=make_snapshot(make_meta(task="other")))
    assert not is_one_task((*sides, strange))
    assert "These runs were given different tasks." == table_of((*sides, strange), width, NOW)[0]


def test_difference_of_two_worktrees(engine: Engine) -> None:
    """The difference goes from the first tree to the second, committed or not, and leaves no files behind."""
    one, other, first, second = two_worktrees(engine)
    (first / "a.txt").write_text("one\n2\nthree\n")
    (first / "only.txt").write_text("x\n")
    (second / "a.txt").write_text("one\nTWO\nthree\n")
    git(second, "commit", "-qam", "two")
    found = engine.work.difference(one, other)
    assert "2 files +1 −2" == found.changes.words
    assert b"-2\n+TWO\n" in found.patch
    assert b"deleted file mode" in found.patch
    assert () == found.notes
    assert not [path for path in Path(paths.works_dir(engine.project)).iterdir() if path.name.startswith(".compared")]
    assert "nothing" == engine.work.difference(other, other_of(engine, other)).changes.words


def other_of(engine: Engine, run: RunSnapshot) -> RunSnapshot:
    """Make a run with the same files as another."""
    meta, tree = make_worktree(engine.project)
    (tree / "a.txt").write_text("one\nTWO\nthree\n")
    (found,) = engine.snapshots((meta.run_id,))
    return found


def test_difference_of_runs_in_the_directory_itself(project_dir: Path) -> None:
    """Runs in the same directory are compared by their recorded changes, with a note about different starts."""
    engine = open_engine(make_repository(project_dir))
    first = run_to_end(engine, "save a.txt 1\\n", "answer one")
    second = run_to_end(engine, "save b.txt 2\\n", "answer two")
    found = engine.work.difference(first, second)
    assert ["b.txt"] == [file.path for file in found.changes.named]
    assert "they started from different files, which are part of the difference" in found.notes


def test_no_difference_without_trees(tmp_path: Path) -> None:
    """There is no difference outside git, or of a run with itself."""
    engine = open_engine(tmp_path)
    first, second = run_to_end(engine, "answer one"), run_to_end(engine, "answer two")
    with pytest.raises(SubdeckError, match="outside git"):
        engine.work.difference(first, second)
    with pytest.raises(SubdeckError, match="compare a run with itself"):
        engine.work.difference(first, first)


def test_command_line(engine: Engine) -> None:
    """Runs are given by name or group, shown as a table or JSON, and compared as a patch."""
    one, other, first, _ = two_worktrees(engine)
    (first / "a.txt").write_text("one\n2\nthree\n")
    root = Path(engine.project.root)
    shown = subdeck("compare", one.run_id, other.run_id, cwd=root)
    assert one.meta.short_id in shown.out.split("\n")[0]
    assert "status  ✓ completed" in shown.out
    patch = subdeck("compare", "--diff", other.run_id, one.run_id, cwd=root).out
    assert "-two\n+2\n" in patch
    document = subdeck(
        "compare", one.run_id, other.run_id, "--json", "--diff", one.run_id, other.run_id, cwd=root
    ).document
    assert [one.run_id, other.run_id] == [run["runId"] for run in document["runs"]]
    assert (True, "+2") == (document["sameTask"], "+2" if "+two" in document["difference"]["patch"] else "")
    json.dumps(document)
    alone = subdeck("compare", one.run_id, cwd=root)
    assert 2 == alone.code
    assert "name 2 to 6 runs, or one run of a group" in alone.err


def test_a_group(project_dir: Path) -> None:
    """One run of a group stands for the whole group, in order."""
    engine = open_engine(project_dir)
    ids = [paths.new_run_id() for _ in range(3)]
    for index, run_id in enumerate(ids):
        make_finished(engine.project, make_meta(run_id, group=Group(ids[0], index, 3, 4)))
    document = subdeck("compare", ids[1], "--json", cwd=project_dir).document
    assert ids == [run["runId"] for run in document["runs"]]


def status(root: Path) -> str:
    return git(root, "status", "--porcelain")


def test_one_of_several_is_chosen(engine: Engine) -> None:
    """Choosing is one plan: the run is applied, the others' worktrees and branches go, and one undo reverts that."""
    one, other, first, second = two_worktrees(engine)
    third = other_of(engine, other)
    (first / "a.txt").write_text("one\n2\nthree\n")
    (second / "new.txt").write_text("new\n")
    root = Path(engine.project.root)
    before = (status(root), git(root, "worktree", "list"), git(root, "branch", "--list"))
    plan = engine.work.plan(CHOOSE, one, others=(other, third))
    for said in ("Writes the changes of scout", f"  scout {third.meta.short_id}: ", ", which exists nowhere else"):
        assert said in plan.words
    assert before[0] == status(root)
    engine.work.act(plan)
    assert " M a.txt" == status(root)
    assert not second.exists()
    assert 1 == git(root, "branch", "--list", "subdeck/*").count("subdeck/")
    act = engine.last_act()
    assert act and f"choosing scout {one.meta.short_id}" == act.title
    assert f"undid choosing scout {one.meta.short_id}" == engine.take_back(act).outcome
    assert before[0] == status(root)
    assert sorted(before[1].split("\n")) == sorted(git(root, "worktree", "list").split("\n"))
    assert before[2] == git(root, "branch", "--list")
    assert "new\n" == (second / "new.txt").read_text()
    assert engine.last_act() is None


def test_nothing_is_discarded_where_nothing_can_be_applied(engine: Engine) -> None:
    """If the chosen run conflicts with the files, the whole plan is refused."""
    one, other, first, second = two_worktrees(engine)
    (first / "a.txt").write_text("one\n2\nthree\n")
    root = Path(engine.project.root)
    (root / "a.txt").write_text("one\nmine\nthree\n")
    plan = engine.work.plan(CHOOSE, one, others=(other,))
    assert "your own changes conflict" in plan.refusal
    with pytest.raises(SubdeckError, match="your own changes conflict in 1 file"):
        engine.work.act(plan)
    assert second.exists()
    assert "mine" in (root / "a.txt").read_text()


def test_choosing_among_runs_without_worktrees(project_dir: Path) -> None:
    """Changes that are already in the files are not applied again, and the refusal names runs without a worktree."""
    engine = open_engine(make_repository(project_dir))
    first = run_to_end(engine, "save new.txt 1\\n", "answer one")
    second = run_to_end(engine, "save other.txt 2\\n", "answer two")
    plan = engine.work.plan(CHOOSE, first, others=(second,))
    assert "nothing is applied: all changes are already there" in plan.refusal
    assert "has no worktree" in plan.refusal


def test_choosing_what_is_applied_already(engine: Engine) -> None:
    """The other runs are discarded even if the chosen one is already applied."""
    one, other, first, second = two_worktrees(engine)
    (first / "a.txt").write_text("one\n2\nthree\n")
    engine.work.act(engine.work.plan(APPLY, one))
    plan = engine.work.plan(CHOOSE, one, others=(other,))
    assert isinstance(plan, ChoicePlan) and plan.applied is None and "all changes are already there" in plan.words
    engine.work.act(plan)
    assert not second.exists()
