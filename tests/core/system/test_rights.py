"""New files are private under any umask, and a place that cannot be written is reported."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.system import processes
from subdeck.core.system.directory import HOME

from tests.core.command_line import SUBDECK, subdeck, write_preset
from tests.core.git.repositories import make, write
from tests.core.hosts import relaying as relays
from tests.core.hosts.clusters import trial
from tests.core.hosts.relaying import relaying
from tests.core.hosts.traveling import own
from tests.factories import make_finished, make_run, open_engine, run_to_end
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

DASKS_OWN = "dask-scratch-space"
"""The empty lock files in there are open to all, but no other user gets there."""
CAN_MOUNT = subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def open_to_others(root: Path) -> Iterator[str]:
    """Yield paths that others may write to, and directories that they may look into."""
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            mode = os.lstat(os.path.join(directory, name)).st_mode
            is_private = stat.S_ISDIR(mode) and name != ".pi"  # which other programs may use too
            if not stat.S_ISLNK(mode) and mode & (0o077 if is_private else 0o022):
                yield f"{os.path.join(directory, name)} {stat.filemode(mode)}"


def test_nothing_is_open_to_others(project_dir: Path, home: Path) -> None:
    """With umask 000 every new directory is 0700, including parents, and no file is writable for others."""
    (project_dir / ".git").chmod(0o700)
    home.chmod(0o700)
    before = {*open_to_others(project_dir), *open_to_others(home)}
    for words in (
        'run --no-preset --agent offline --save-as kept "what is here"',
        'run kept --agent offline "what is here"',
        "connect pi",
        "models --refresh",
        "rm $(ls .pi/subagents/runs | head -1)",
    ):
        script = f"umask 000; {shlex.join(SUBDECK)} {words}"
        done = subprocess.run(["/bin/sh", "-c", script], cwd=project_dir, capture_output=True, timeout=60)
        assert b"Traceback" not in done.stderr, done.stderr
    assert (project_dir / ".pi/subagents/kept.md").exists()
    assert (project_dir / ".pi/subagents/trash").exists()
    assert set() == {*open_to_others(project_dir), *open_to_others(home)} - before


@contextmanager
def masked(mask: int) -> Iterator[None]:
    """Make this process and its children create files with another umask."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def others_access(*roots: Path) -> str:
    """Return a line for each path that others may open or look into, below private directories.

    A worktree has its user's umask, but its parent directory does not.
    """
    found: list[str] = []
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        try:
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) or path.name in (".gitignore", "tree") or path.parent.name == DASKS_OWN:
                continue
            if mode & 0o077:
                found.append(f"{path} {stat.filemode(mode)}")
            if stat.S_ISDIR(mode):
                waiting += path.iterdir()
        except FileNotFoundError:
            continue  # just removed by its run
    return "\n".join(found)


@pytest.mark.parametrize("mask", [0o000, 0o077], ids=oct)
async def test_runs_on_hosts_are_private(
    mask: int, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under any umask, the files of relay, spool and a run's code are private."""
    monkeypatch.setitem(relays.SETTINGS, "code", "git")
    Path(tmp_path / "mine/.pi/subagents/runs").mkdir(parents=True)
    for name in ("subagents", "subagents/runs"):
        (tmp_path / "mine/.pi" / name).chmod(0o700)
    there = tmp_path / "there"
    there.mkdir(mode=0o700)
    root = own(make(tmp_path / "mine", {"a.txt": "one\n", ".gitignore": ".pi/\n"}))
    write(root, {"a.txt": "two\n"})
    with masked(mask):
        async with relaying(root, there, 2) as relay:
            run_id = await relay.start("save made.py x = 1", "answer 42")
            ended = await relay.end(run_id)
            assert ("completed", "42", ()) == (ended.status, ended.final_text, ended.artifact_errors)
            assert "" == others_access(root / HOME, home / ".local/state/subdeck", there)
    assert set() == {*open_to_others(root / ".pi")}


def test_a_cluster_is_private(project_dir: Path, home: Path) -> None:
    """Even if the umask opens files to all, scheduler, workers, relay and runs write privately."""
    with masked(0), trial(cwd=project_dir):
        done = subdeck("run", "--no-preset", "--agent", "offline", "--runner", "hosts", "what is here", cwd=project_dir)
        assert 0 == done.code, done.err
        assert "" == others_access(project_dir / HOME, home / ".local/state/subdeck")
        relay = int((project_dir / HOME / "runs/.relay").read_text())
        os.kill(relay, signal.SIGTERM)
        wait_until(lambda: relay not in processes.living(), "the relay to go")


def test_snapshots_are_private(tmp_path: Path, home: Path) -> None:
    """The index of a repository's files is private under any umask."""
    root = own(make(tmp_path / "mine", {"a.txt": "one\n"}))
    write(root, {"b.txt": "two\n"})
    with masked(0):
        run = run_to_end(open_engine(root), "save c.txt three", "answer 42", worktree=True)
    assert "completed" == run.status
    state = home / ".local/state/subdeck"
    assert list(state.rglob("index.base"))
    assert "" == others_access(state)


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    write_preset(project_dir)
    return open_engine(project_dir)


def read_only(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one command with the project on a read-only file system."""
    place = shlex.quote(str(project))
    mounted = f"mount --bind {place} {place} && mount -o remount,ro,bind {place}"
    script = f"{mounted} && cd {place} && exec {shlex.join([*SUBDECK, *words])}"
    return subprocess.run(["unshare", "-m", "/bin/sh", "-c", script], capture_output=True, text=True, timeout=60)


REFUSED = (
    *(["rm"], ["stop"], ["clean", "--keep", "0", "--yes"], ["run", "scout", "x"]),
    ["run", "--no-preset", "--save-as", "new", "x"],
)


@pytest.mark.skipif(not CAN_MOUNT, reason="no right to mount")
def test_a_read_only_file_system(engine: Engine, project_dir: Path) -> None:
    """Each command reports the system's error, and reading still works."""
    done = make_finished(engine.project).run_id
    meta, lock = make_run(engine.project)
    listed = read_only(project_dir, "status")
    assert (0, True) == (listed.returncode, done[-6:] in listed.stdout)
    assert "◌ queued" in listed.stdout, "somebody holds it"
    os.close(lock)
    listed = read_only(project_dir, "status", meta.run_id)
    assert "◇ queued" in listed.stdout
    assert "its file system is read-only" in listed.stdout
    assert "machine" not in listed.stdout
    for words in REFUSED:
        refused = read_only(project_dir, *words, *{"rm": [done], "stop": [meta.run_id]}.get(words[0], []))
        assert "Traceback" not in refused.stderr
        assert "ead-only" in refused.stderr, (words, refused)
        assert "still held" not in refused.stderr
    assert "failed" == {run.run_id: run.status for run in engine.snapshots()}[meta.run_id]
    assert 0 == subdeck("rm", done, cwd=project_dir).code


def test_a_directory_of_another_user(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in another user's directory keeps its last recorded state, with the reason."""
    _, lock = make_run(engine.project)
    os.close(lock)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    (run,) = engine.snapshots()
    assert (True, "its directory is not writable") == (run.elsewhere, run.unwritable)
    monkeypatch.undo()
    assert ["failed"] == [run.status for run in engine.snapshots()]
