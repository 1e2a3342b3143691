"""Runs on hosts that take the project's files along: from the launch to the applied changes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.delegation.results import result_text
from subdeck.core.errors import LaunchError, SubdeckError
from subdeck.core.hosts.protocol import Verb
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work import deletion, worktrees
from subdeck.core.work.apply import ApplyPlan
from subdeck.core.work.operation import APPLY, COMMIT, DISCARD, MERGE, SAVE
from subdeck.core.work.records import read_away

from ..command_line import subdeck
from ..git.repositories import git, make, write
from ..work.test_taking import undo
from . import relaying as relays
from .hosting import until
from .relaying import relaying
from .traveling import own

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.processes]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with uncommitted files, and have runs take its files along."""
    monkeypatch.setitem(relays.SETTINGS, "code", "git")
    root = own(make(tmp_path / "mine", {"a.txt": "one\n", "src/b.py": "b = 1\n", ".gitignore": ".pi/\n"}))
    write(root, {"a.txt": "one\ntwo\n"})
    return root


def refs(root: Path) -> str:
    return git(root, "for-each-ref", "--format=%(refname)", "refs/subdeck/runs")


async def test_what_a_run_changes_on_a_host_is_a_branch_here(root: Path, tmp_path: Path) -> None:
    """A run works there with the files as of its launch; its result names the branch of its changes."""
    async with relaying(root, tmp_path, 2) as there:
        run_id = await there.start("save made.py x = 1", "bash cat a.txt >> made.py", "answer 42")
        result = await there.end(run_id)
        assert ("completed", "42", ()) == (result.status, result.final_text, result.artifact_errors)
        assert f"subdeck/adhoc-{run_id[-6:]}" == result.branch
        assert "A\tmade.py" == git(root, "diff", "--name-status", result.snapshot, result.branch)
        assert "x = 1one\ntwo" == git(root, "show", f"{result.branch}:made.py")
        assert "a.txt" == git(root, "diff", "--name-only", "HEAD", result.snapshot)
        assert result.changes and ["made.py"] == [file.path for file in result.changes.named]
        await until(lambda: refs(root) == "", "what was kept for the run to be let go")
        assert not (root / "made.py").exists()
        seen = there.snapshot(run_id)
        assert seen and seen.branch == result.branch
        assert f"on branch {result.branch}" in result_text(seen, result)
        assert f"changed 1 file +2 −0, on branch {result.branch}" in subdeck("status", run_id[-6:], cwd=root).out


async def test_its_work_is_taken_over_like_that_of_any_run(root: Path, tmp_path: Path) -> None:
    """A host run's changes are shown, applied, undone, merged, saved and discarded like those of a worktree run."""
    async with relaying(root, tmp_path, 2) as there:
        first, second, idle = await there.launch(
            ("save made.py x = 1\\n", "answer 1"), ("save src/b.py b = 2\\n", "answer 2"), ("answer 3",)
        )
        branches = {run_id: (await there.end(run_id)).branch for run_id in (first, second, idle)}
        by_branch = {git(root, "show", "--format=", "--name-only", at): run_id for run_id, at in branches.items() if at}
        work = there.engine.work

        def run(run_id: str) -> RunSnapshot:
            snapshot = there.snapshot(run_id)
            assert snapshot
            return snapshot

        one, other = run(by_branch["made.py"]), run(by_branch["src/b.py"])
        (none,) = (run(run_id) for run_id in (first, second, idle) if run_id not in by_branch.values())
        assert b"+x = 1" in work.patch(one)
        changes = work.changes(one)
        assert changes and [("made.py", 1)] == [(file.path, file.added) for file in changes.named]
        plan = work.plan(APPLY, one)
        assert isinstance(plan, ApplyPlan)
        assert not plan.refusal and ["made.py"] == [file.path for file in plan.files] and plan.is_whole
        work.act(plan)
        assert "x = 1\n" == (root / "made.py").read_text()
        undo(there.engine)
        assert not (root / "made.py").exists()
        assert "changed nothing" in work.plan(APPLY, none).refusal
        merge = work.plan(MERGE, other)
        assert not merge.refusal, merge.refusal
        work.act(merge)
        assert "b = 2\n" == (root / "src/b.py").read_text()
        assert "one\ntwo\n" == (root / "a.txt").read_text()
        assert "M a.txt" == git(root, "status", "--porcelain").strip()
        work.act(work.plan(SAVE, one, name="mine"))
        assert git(root, "rev-parse", "mine") == git(root, "rev-parse", f"subdeck/adhoc-{one.run_id[-6:]}")
        assert "on h1" in work.plan(DISCARD, other).words
        work.act(work.plan(DISCARD, other))
        assert not git(root, "for-each-ref", f"refs/heads/subdeck/adhoc-{other.run_id[-6:]}")
        assert f"restored the branch subdeck/adhoc-{other.run_id[-6:]}" == undo(there.engine)
        assert git(root, "for-each-ref", f"refs/heads/subdeck/adhoc-{other.run_id[-6:]}")


async def test_a_relay_that_is_killed_while_it_fetches(root: Path, tmp_path: Path) -> None:
    """If a relay is killed while it fetches, another one fetches the changes, and only then is there a result."""
    async with relaying(root, tmp_path, 2) as there:
        run_id = await there.start("save made.py x = 1", "answer 42")
        seen = asyncio.Event()
        call = there.carrier.call

        async def stuck(key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
            if verb is Verb.FETCH:
                seen.set()
                await asyncio.Event().wait()
            return await call(key, verb, message, timeout)

        there.carrier.call = stuck  # pyright: ignore[reportAttributeAccessIssue]
        await asyncio.wait_for(seen.wait(), 30)
        await there.kill()
        assert there.result(run_id) is None
        there.carrier.call = call  # pyright: ignore[reportAttributeAccessIssue]
        there.begin()
        result = await there.end(run_id)
        assert "A\tmade.py" == git(root, "diff", "--name-status", result.snapshot, result.branch)


async def test_a_stopped_run_leaves_what_it_has_done(root: Path, tmp_path: Path) -> None:
    """A stopped run's changes are fetched."""
    async with relaying(root, tmp_path, 2) as there:
        run_id = await there.start("save made.py x = 1", "hang")
        await there.see(run_id, lambda run: "made.py" in there.text(run_id), "the file to be written")
        await asyncio.to_thread(there.engine.stop, (run_id,))
        result = await there.end(run_id)
        assert "stopped" == result.reason
        assert "A\tmade.py" == git(root, "diff", "--name-status", result.snapshot, result.branch)


async def test_what_the_host_refuses_is_told(root: Path, tmp_path: Path) -> None:
    """If a host refuses the files, the run ends with the reason, and leaves no files here."""
    async with relaying(root, tmp_path, 2) as there:
        agent = there.carrier.agents["h1"]
        place = Path(agent._root.path) / "code"
        for name in os.listdir(place):
            (place / name).rename(tmp_path / name)
        place.rmdir()
        place.write_text("in the way")
        run_id = await there.start("answer 42")
        result = await there.end(run_id)
        assert "start_failed" == result.reason and "files" in (result.error_message or "")
        await until(lambda: refs(root) == "", "what was kept for the run to be let go")


async def test_a_run_whose_files_are_not_known_works_with_no_others(root: Path, tmp_path: Path) -> None:
    """If the record of a run's files is lost, the run does not start in the host's own directory instead."""
    async with relaying(root, tmp_path, 1) as there:
        there.carrier.cut.add("h1")
        run_id = await there.start("save made.py x = 1", "answer 42")
        (Path(paths.work_dir(there.project, run_id)) / "away.json").unlink()
        there.carrier.cut.clear()
        result = await there.end(run_id)
        assert "start_failed" == result.reason and "no longer available" in (result.error_message or "")
        assert not (root / "made.py").exists()


async def test_a_directory_without_git_is_refused_at_the_launch(root: Path, tmp_path: Path, project_dir: Path) -> None:
    """Without a git repository, a run that takes files along is refused before it exists."""
    async with relaying(project_dir, tmp_path, 1) as there:
        with pytest.raises(LaunchError, match="git repository"):
            await there.start("answer 42")
        assert not there.engine.snapshots()
        assert not os.path.exists(paths.works_dir(there.project)) or not any(
            read_away(str(path)) for path in Path(paths.works_dir(there.project)).iterdir()
        )


async def test_deleting_a_run_asks_for_what_is_nowhere_else(root: Path, tmp_path: Path) -> None:
    """An unmerged branch stays with a deleted run, and goes with a purged one."""
    async with relaying(root, tmp_path, 1) as there:
        run_id = await there.start("save made.py x = 1", "answer 42")
        branch = (await there.end(run_id)).branch
        (unmerged,) = deletion.unmerged(there.project, [run_id])
        assert branch in unmerged.words
        (listed,) = worktrees.listed(there.project)
        assert branch == listed.record.branch and not listed.state.trouble
        deletion.delete(there.project, [run_id])
        assert branch in git(root, "branch", "--list", branch)
        deletion.purge(there.project, [run_id])
        assert "" == git(root, "branch", "--list", branch)
        assert not Path(paths.work_dir(there.project, run_id)).exists()


async def test_a_run_that_changed_nothing_is_in_no_list(root: Path, tmp_path: Path) -> None:
    """A run without changes has no branch to list, merge or discard, and deleting it loses nothing."""
    async with relaying(root, tmp_path, 1) as there:
        run_id = await there.start("answer 42")
        await there.end(run_id)
        assert not list(worktrees.listed(there.project))
        assert not deletion.unmerged(there.project, [run_id])
        run = there.snapshot(run_id)
        assert run
        for operation in (DISCARD, COMMIT):
            with pytest.raises(SubdeckError, match="changed nothing"):
                there.engine.work.plan(operation, run)
        deletion.delete(there.project, [run_id])
        deletion.purge(there.project, [run_id])
        assert not Path(paths.work_dir(there.project, run_id)).exists()


async def test_deleting_a_run_for_good_lets_its_files_go(root: Path, tmp_path: Path) -> None:
    """The snapshot of a run that never reached a host is removed with the run."""
    async with relaying(root, tmp_path, 1) as there:
        run_id = await there.start("answer 42", needs={"gpu": 1})
        assert run_id in refs(root)
        await asyncio.to_thread(there.engine.stop, (run_id,))
        await there.end(run_id)
        await until(lambda: refs(root) == "", "what was kept for the run to be let go")
