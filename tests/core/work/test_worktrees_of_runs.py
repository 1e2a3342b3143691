"""Runs in their own git worktree: launch, creation, isolation, continuation."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.errors import UsageError
from subdeck.core.run import artifacts
from subdeck.core.run.describe import doing
from subdeck.core.run.events import Notice
from subdeck.core.run.model import WorktreeFrom
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work.operation import APPLY
from subdeck.core.work.records import read_record
from subdeck.core.work.worktree import take_back

from tests.factories import (
    events_of,
    open_engine,
    request,
    result_of,
    run_dir,
    run_to_end,
    start,
    wait_for_end,
)
from tests.waiting import wait_until

from ..git.repositories import commit, git, make, write

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = make(tmp_path / "repository", {"a.py": "one\n", "lib/b.py": "b\n", ".gitignore": ".env\n"})
    (root / "a.py").write_text("not committed\n")
    (root / "new.py").write_text("untracked\n")
    (root / ".env").write_text("KEY=1\n")
    return root


def state_of(root: Path) -> tuple[str, ...]:
    """Return the repository data that no run in a worktree may touch."""
    index = (root / ".git" / "index").read_bytes().hex()
    return (
        *(git(root, "status", "--porcelain"), git(root, "stash", "list"), git(root, "rev-parse", "HEAD"), index),
        *(git(root, "symbolic-ref", "HEAD"), git(root, "branch", "--list", "main")),
    )


def test_a_run_in_a_worktree(repository: Path) -> None:
    """A run works in a copy of the current files on its own branch; the user's files, index, branch and stash stay
    unchanged.
    """
    before = state_of(repository)
    engine = open_engine(repository)
    run = run_to_end(engine, "save a.py mine\\n", "save more.py x\\n", "answer Done.", worktree=WorktreeFrom.FILES)
    assert "completed" == run.status, result_of(engine, run)
    tree = Path(run.meta.cwd)
    assert str(tree) == paths.work_dir(engine.project, run.run_id) + "/tree"
    assert ("mine\n", "untracked\n", "x\n") == tuple(
        (tree / name).read_text() for name in ("a.py", "new.py", "more.py")
    )
    assert before == state_of(repository)
    plan, changes = run.meta.worktree, result_of(engine, run).changes
    assert plan
    assert changes
    branch = f"subdeck/adhoc-{run.meta.short_id}"
    assert (branch, str(repository), 2) == (plan.branch, plan.root, plan.uncommitted)
    assert branch == git(tree, "branch", "--show-current")
    assert "not committed" == git(tree, "show", "HEAD:a.py")
    assert [("a.py", 1, 1), ("more.py", 1, 0)] == [(file.path, file.added, file.removed) for file in changes.named]


def tree_files(engine: Engine, run: RunSnapshot) -> set[str]:
    tree = Path(run.meta.cwd)
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file() and path.name != ".git"}


def remains(engine: Engine) -> list[str]:
    """Return the leftovers of runs: branches, worktrees known to git, work directories."""
    root = Path(engine.project.root)
    works = Path(paths.works_dir(engine.project))
    return [
        *git(root, "branch", "--list", "subdeck/*", "--format=%(refname:short)").split(),
        *git(root, "worktree", "list", "--porcelain").split("\n\n")[1:],
        *sorted(path.name for path in works.iterdir() if paths.is_run_id(path.name)),
    ]


def test_where_its_git_commands_go(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run started by a git hook, with variables that name the user's repository, commits in its own."""
    before = state_of(repository)
    engine = open_engine(repository)
    named = {
        "DIR": ".git",
        "INDEX_FILE": ".git/index",
        "WORK_TREE": "",
        "COMMON_DIR": ".git",
        "OBJECT_DIRECTORY": ".git/objects",
    }
    for name, value in named.items():
        monkeypatch.setenv(f"GIT_{name}", str(repository / value))
    commands = "bash echo x > made && git add made && git -c user.name=a -c user.email=a@b commit -qm made"
    run = run_to_end(engine, commands, "answer Done.", worktree=WorktreeFrom.FILES)
    for name in named:
        monkeypatch.delenv(f"GIT_{name}")
    assert "completed" == run.status, result_of(engine, run)
    assert "made" == git(Path(run.meta.cwd), "log", "-1", "--format=%s")
    assert before == state_of(repository)


def test_what_it_begins_with(repository: Path) -> None:
    """A worktree from HEAD has no uncommitted changes; from clean files it starts with HEAD itself."""
    engine = open_engine(repository)
    run = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.HEAD)
    assert run.meta.worktree
    assert (git(repository, "rev-parse", "HEAD"), 0) == (run.meta.worktree.commit, run.meta.worktree.uncommitted)
    assert {"a.py", "lib/b.py", ".gitignore"} == tree_files(engine, run)
    assert "one\n" == (Path(run.meta.cwd) / "a.py").read_text()
    git(repository, "stash", "-q", "-u")
    run = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    assert run.meta.worktree
    assert git(repository, "rev-parse", "HEAD") == run.meta.worktree.commit


def test_its_place_below_the_root(repository: Path) -> None:
    """A run launched below the root works in the same directory of its worktree."""
    engine = open_engine(repository / "lib")
    run = run_to_end(engine, "save c.py x", "answer Done.", worktree=WorktreeFrom.FILES, cwd=str(repository / "lib"))
    assert run.meta.cwd.endswith("/tree/lib")
    assert str(repository / "lib") == run.meta.origin_cwd
    assert (Path(run.meta.cwd) / "c.py").exists()
    assert not (repository / "lib" / "c.py").exists()


def test_runs_that_are_launched_there_are_kept_with_the_others(repository: Path, tmp_path: Path) -> None:
    """Runs launched inside a worktree, by an agent or a user, belong to the project it was made from: they outlive the
    worktree and are listed there. A directory that only looks like a worktree is its own project.
    """
    engine = open_engine(repository)
    run = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    tree = Path(run.meta.cwd)
    inside = Engine.open(str(tree / "lib"))
    assert engine.project.root == inside.project.root
    nested = run_to_end(inside, "save n.py n", "answer Done.", cwd=str(tree / "lib"))
    assert str(tree / "lib") == nested.meta.cwd and (tree / "lib" / "n.py").exists()
    assert {run.run_id, nested.run_id} == {one.run_id for one in engine.snapshots()}
    assert not (tree / ".pi").exists()
    copied = tmp_path / "copied" / run.run_id
    shutil.copytree(tree.parent, copied, symlinks=True)
    assert str(copied / "tree") == Engine.open(str(copied / "tree")).project.root


def test_copies_of_one_task(repository: Path) -> None:
    """Ten attempts of a task each get their own worktree of one snapshot, with the uncommitted files."""
    before = state_of(repository)
    engine = open_engine(repository, max_parallel=10, worktree=True)
    wanted = [request("save a.py mine\\n", "answer Done.") for _ in range(10)]
    runs = [wait_for_end(engine, run.run_id) for run in engine.launch(wanted, background=True)]
    plans = [run.meta.worktree for run in runs]
    assert 10 == len({run.meta.cwd for run in runs}) == len({plan.branch for plan in plans if plan})
    assert 1 == len({plan.commit for plan in plans if plan})
    assert all("untracked\n" == (Path(run.meta.cwd) / "new.py").read_text() for run in runs)
    assert all((changes := result_of(engine, run).changes) and "+1 −1" == changes.figure for run in runs)
    assert before == state_of(repository)


def test_what_is_ignored_comes_along_by_the_list(repository: Path) -> None:
    """Ignored files are copied by the user's list, never through links, and linked only if the list requests it."""
    write(repository, {".gitignore": ".env\nnode_modules\ncache\nonly/\nout\nsecrets\n", "lib/.env": "KEY=2\n"})
    write(repository, {"node_modules/x/bin.js": "x", "cache/big": "b", "only/x": "x", "secrets/key": "k"})
    (repository / "node_modules" / "x" / "bin.js").chmod(0o755)
    (repository / "node_modules" / "link").symlink_to("x/bin.js")
    (repository / "node_modules" / "own").symlink_to(repository / "lib")
    outside = repository.parent / "outside"
    outside.mkdir()
    (repository / "out").symlink_to(outside)
    engine = open_engine(repository, worktree_copy=[".env", "node_modules", "out"], worktree_link=["cache", "only"])
    run = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    tree = Path(run.meta.cwd)
    assert ("KEY=1\n", "KEY=2\n") == ((tree / ".env").read_text(), (tree / "lib" / ".env").read_text())
    assert (tree / "node_modules" / "x" / "bin.js").stat().st_mode & 0o100
    assert "x/bin.js" == os.readlink(tree / "node_modules" / "link")
    assert str(tree / "lib") == os.readlink(tree / "node_modules" / "own")
    assert str(repository / "cache") == os.readlink(tree / "cache")
    assert not any(os.path.lexists(tree / name) for name in ("out", "only"))
    assert not (tree / "secrets").exists()
    said = " ".join(event.text for event in events_of(engine, run) if isinstance(event, Notice))
    assert "copied .env, lib/.env, node_modules: 3 files, " in said
    assert "out was not copied or linked: it is a link out of the project" in said
    changes = result_of(engine, run).changes
    assert changes
    assert "nothing" == changes.words


def test_a_setup_command(repository: Path) -> None:
    """A setup command runs in the worktree before the agent; if it fails, the start fails with the end of its output,
    and the worktree is removed.
    """
    engine = open_engine(repository, worktree_setup=["sh", "-c", "pwd; echo ready > made; echo warm"])
    run = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    assert "ready\n" == (Path(run.meta.cwd) / "made").read_text()
    assert f"{run.meta.cwd}\nwarm\n" == (run_dir(engine, run) / paths.SETUP_LOG).read_text()
    left = remains(engine)
    engine = open_engine(repository, worktree_setup=["sh", "-c", "echo no such package; exit 3"])
    run = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    assert ("failed", "start_failed", None) == (run.status, run.reason, run.started_at)
    assert "the setup command exited with code 3:\nno such package" in (result_of(engine, run).error_message or "")
    engine = open_engine(repository, worktree_setup=["sleep", "60"], worktree_setup_timeout="0.3s")
    run = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    assert "the setup command took longer than 0.3 s" in (result_of(engine, run).error_message or "")
    assert left == remains(engine)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["./no-such-program"], "cannot start the setup command: No such file or directory"),
        (["sh", "-c", "kill -9 $$"], "the setup command was killed by signal 9"),
    ],
)
def test_a_setup_command_that_does_not_run(repository: Path, command: list[str], why: str) -> None:
    """A setup command that cannot start or is killed fails the start with that reason, and the worktree is removed."""
    engine = open_engine(repository, worktree_setup=command)
    run = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    assert ("failed", "start_failed", None) == (run.status, run.reason, run.started_at)
    assert why in (result_of(engine, run).error_message or "")
    assert [] == remains(engine)


def test_a_setup_command_that_leaves_the_branch(repository: Path) -> None:
    """If setup checks out another branch, its changes cannot be told apart: the run shows all changes, with a note."""
    setup = ["sh", "-c", "git checkout -q -b another; echo made > made.txt"]
    engine = open_engine(repository, worktree_setup=setup)
    run = run_to_end(engine, "save more.py x\\n", "answer Done.", worktree=WorktreeFrom.FILES)
    said = [event.text for event in events_of(engine, run) if isinstance(event, Notice)]
    assert "changes by the setup command count as the run's own" in said
    changes = result_of(engine, run).changes
    assert changes
    assert ["made.txt", "more.py"] == [file.path for file in changes.named]


def test_a_directory_that_is_a_link_in_the_commit(repository: Path) -> None:
    """A run whose directory is committed as a link out of the worktree does not start, and nothing is created there."""
    outside = repository.parent / "outside"
    outside.mkdir()
    (repository / "out").symlink_to(outside)
    commit(repository)
    (repository / "out").unlink()
    (repository / "out" / "sub").mkdir(parents=True)
    engine = open_engine(repository)
    where = str(repository / "out" / "sub")
    run = run_to_end(engine, "save x x", "answer Done.", worktree=WorktreeFrom.HEAD, cwd=where)
    assert ("failed", "start_failed", None) == (run.status, run.reason, run.started_at)
    assert "the run's directory is a link out of the worktree" in (result_of(engine, run).error_message or "")
    assert [] == os.listdir(outside)
    assert [] == remains(engine)


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_a_setup_command_changes_is_not_the_runs(repository: Path, is_clean: bool) -> None:
    """The run starts with the setup's changes, but only the agent's changes are applied and merged."""
    if is_clean:
        git(repository, "stash", "-q", "-u")
    engine = open_engine(repository, worktree_setup=["sh", "-c", "echo locked >> a.py; echo made > made.txt"])
    run = run_to_end(engine, "save more.py x\\n", "answer Done.", worktree=WorktreeFrom.FILES)
    tree = Path(run.meta.cwd)
    assert (tree / "a.py").read_text().endswith("locked\n") and (tree / "made.txt").exists()
    changes = result_of(engine, run).changes
    assert changes
    assert ["more.py"] == [file.path for file in changes.named]
    assert "?? more.py" == git(tree, "status", "--porcelain")
    said = " ".join(event.text for event in events_of(engine, run) if isinstance(event, Notice))
    assert "the setup command changed 2 files: the run starts with them" in said
    before = (repository / "a.py").read_text()
    engine.work.act(engine.work.plan(APPLY, run))
    assert before == (repository / "a.py").read_text()
    assert (repository / "more.py").exists() and not (repository / "made.txt").exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_stop_while_it_is_prepared(repository: Path, tmp_path: Path, force: bool) -> None:
    """A run shows that its worktree is being prepared, and a stop at that time leaves no trace."""
    gate = tmp_path / "gate"
    engine = open_engine(repository, worktree_setup=["sh", "-c", f"touch {gate}; sleep 60"])
    run = start(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    wait_until(gate.exists, "the setup command to run")
    (run,) = engine.snapshots((run.run_id,))
    assert "preparing the worktree" == doing(run)
    engine.stop((run.run_id,), force=force)
    run = wait_for_end(engine, run.run_id)
    assert ("aborted", "killed" if force else "stopped") == (run.status, run.reason)
    assert [] == remains(engine)


def test_a_follow_up_goes_on_in_the_same_worktree(repository: Path) -> None:
    """A follow-up of a run works in the same worktree while that exists."""
    engine = open_engine(repository)
    first = run_to_end(engine, "save more.py x", "answer Done.", worktree=WorktreeFrom.FILES)
    second = run_to_end(engine, "save more.py y", "answer Done.", cwd=first.meta.cwd, follow_up=first.run_id)
    assert second.meta.worktree
    assert first.meta.worktree
    assert (first.run_id, first.meta.worktree.branch) == (second.meta.worktree.host, second.meta.worktree.branch)
    assert (first.meta.cwd, str(repository)) == (second.meta.cwd, second.meta.origin_cwd)
    assert "y" == (Path(first.meta.cwd) / "more.py").read_text()
    said = [event.text for event in events_of(engine, second) if isinstance(event, Notice)]
    assert any(f"continuing in the worktree of run {first.meta.short_id}" in text for text in said)
    assert 1 == len(git(repository, "branch", "--list", "subdeck/*").splitlines())
    changes = result_of(engine, second).changes
    assert changes
    assert ["more.py"] == [file.path for file in changes.named]


def test_a_conversation_goes_on_where_it_was_begun(repository: Path) -> None:
    """A run that names only the conversation, as parents do, gets the conversation's worktree; a removed worktree is a
    reason to refuse.
    """
    engine = open_engine(repository)
    first = run_to_end(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    second = run_to_end(engine, "answer Done.", child_session=first.child_session_id)
    assert first.meta.cwd == second.meta.cwd
    git(repository, "worktree", "remove", "--force", first.meta.cwd)
    with pytest.raises(UsageError, match=f"the worktree of run {first.meta.short_id} no longer exists"):
        start(engine, "answer Done.", child_session=first.child_session_id)


def unborn(root: Path) -> Path:
    make(root)
    write(root, {"a.py": "a"})
    return root


def bare(root: Path) -> Path:
    return make(root, None, "--bare")


def no_repository(root: Path) -> Path:
    root.mkdir()
    return root


@pytest.mark.parametrize(
    ("made", "begins", "why"),
    [
        (bare, WorktreeFrom.FILES, "the repository is bare"),
        (no_repository, WorktreeFrom.FILES, "not a git repository"),
        (unborn, WorktreeFrom.HEAD, "the repository has no commit yet"),
    ],
)
def test_where_there_can_be_none(tmp_path: Path, made: Callable[[Path], Path], begins: WorktreeFrom, why: str) -> None:
    """An impossible worktree is refused before anything exists; if only settings want it, it is a warning."""
    root = made(tmp_path / "repository")
    engine = open_engine(root)
    with pytest.raises(UsageError, match=why):
        start(engine, "answer Done.", worktree=begins)
    assert () == engine.snapshots()
    assert not os.path.exists(paths.works_dir(engine.project))
    run = run_to_end(open_engine(root, worktree=str(begins)), "answer Done.")
    assert run.meta.worktree is None
    assert any(why in warning for warning in run.meta.warnings)


def detached(root: Path) -> None:
    git(root, "checkout", "-q", "--detach")


def rebasing(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "mine")
    git(root, "checkout", "-q", "-b", "other", "HEAD~")
    write(root, {"a.py": "other\n"})
    commit(root)
    git(root, "rebase", "-q", "main", check=False)
    assert (root / ".git" / "rebase-merge").exists()


def sparse(root: Path) -> None:
    git(root, "sparse-checkout", "set", "--cone", "other")
    assert not (root / "lib").exists()


def with_submodule(root: Path) -> None:
    inner = make(root.parent / "inner", {"i.py": "i"})
    git(root, "submodule", "add", "-q", str(inner), "inner")


def moved_to_linked(root: Path) -> None:
    """Do nothing: the engine is opened on a linked worktree instead."""
    git(root, "worktree", "add", "-q", str(root.parent / "linked"), "HEAD")


@pytest.mark.parametrize("odd", [detached, rebasing, sparse, with_submodule, moved_to_linked])
def test_odd_repositories(repository: Path, odd: Callable[[Path], None]) -> None:
    """Detached HEAD, rebase, sparse checkout, submodules, linked worktree: a run gets a worktree with the current files
    and leaves the repository unchanged.
    """
    odd(repository)
    root = repository.parent / "linked" if odd is moved_to_linked else repository
    (root / "new.py").write_text("untracked\n")
    status, head = git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD")
    engine = open_engine(root)
    run = run_to_end(engine, "save more.py x", "answer Done.", worktree=WorktreeFrom.FILES)
    assert "completed" == run.status, result_of(engine, run).error_message
    tree = Path(run.meta.cwd)
    assert ("untracked\n", (root / "a.py").read_text()) == ((tree / "new.py").read_text(), (tree / "a.py").read_text())
    assert (status, head) == (git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD"))
    changes = result_of(engine, run).changes
    assert changes
    assert ["more.py"] == [file.path for file in changes.named]
    if odd is with_submodule:
        assert any("submodules are empty" in warning for warning in run.meta.warnings)


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    """A worktree from the current files works without a commit."""
    root = unborn(tmp_path / "repository")
    engine = open_engine(root)
    run = run_to_end(engine, "save more.py x", "answer Done.", worktree=WorktreeFrom.FILES)
    assert "completed" == run.status, result_of(engine, run).error_message
    assert {"a.py", "more.py"} == tree_files(engine, run)
    assert "" == git(root, "branch", "--list", "main")


def test_a_launch_that_is_broken_off(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that ends before its runs exist leaves neither branch nor record."""

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    engine = open_engine(repository)
    monkeypatch.setattr(artifacts, "create_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.launch([request("answer Done.", worktree=WorktreeFrom.FILES)] * 3, background=True)
    assert [] == remains(engine)


def test_a_wrapper_that_is_killed_while_it_prepares(repository: Path, tmp_path: Path) -> None:
    """If the wrapper is killed during preparation, the run is lost and the work record names its leftovers."""
    gate = tmp_path / "gate"
    engine = open_engine(
        repository, worktree_setup=["sh", "-c", f"echo $$ > {gate}.new; mv {gate}.new {gate}; sleep 60"]
    )
    run = start(engine, "answer Done.", worktree=WorktreeFrom.FILES)
    wait_until(gate.exists, "the setup command to run")
    os.kill(json.loads((run_dir(engine, run) / paths.RUNNER).read_text())["pid"], signal.SIGKILL)
    run = wait_for_end(engine, run.run_id)
    assert ("failed", "lost") == (run.status, run.reason)
    wait_until(lambda: not os.path.exists(f"/proc/{gate.read_text().strip()}"), "the setup command to end")
    record = read_record(paths.work_dir(engine.project, run.run_id))
    assert record
    assert run.meta.worktree
    assert run.meta.worktree.branch == record.branch
    left = remains(engine)
    assert [record.branch, run.run_id] == [left[0], left[-1]]
    take_back(engine.project, [run.run_id])
    assert [] == remains(engine)
