"""What is made is for this user only, whatever the umask; where nothing can be written, that is said."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.engine import Engine

from tests.core.command_line import SUBDECK, subdeck, write_preset
from tests.factories import make_finished, make_run, open_engine

CAN_MOUNT = subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def open_to_others(root: Path) -> Iterator[str]:
    """Yield what others may write to, and the directories that they may look into."""
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            mode = os.lstat(os.path.join(directory, name)).st_mode
            is_private = stat.S_ISDIR(mode) and name != ".pi"  # which a project may have for other programs, too
            if not stat.S_ISLNK(mode) and mode & (0o077 if is_private else 0o022):
                yield f"{os.path.join(directory, name)} {stat.filemode(mode)}"


def test_nothing_is_open_to_others(project_dir: Path, home: Path) -> None:
    """With umask 000 every directory that is made is 0700, those above it too, and no file is writable for others."""
    (project_dir / ".git").chmod(0o700)
    home.chmod(0o700)
    before = {*open_to_others(project_dir), *open_to_others(home)}
    for words in (
        'run --no-preset --agent offline --save-as kept "what is here"',
        'run kept --agent offline "what is here"',
        "pi install",
        "models --refresh",
        "rm $(ls .pi/subagents/runs | head -1)",
    ):
        script = f"umask 000; {shlex.join(SUBDECK)} {words}"
        done = subprocess.run(["/bin/sh", "-c", script], cwd=project_dir, capture_output=True, timeout=60)
        assert b"Traceback" not in done.stderr, done.stderr
    assert (project_dir / ".pi/subagents/kept.md").exists()
    assert (project_dir / ".pi/subagents/trash").exists()
    assert set() == {*open_to_others(project_dir), *open_to_others(home)} - before


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    write_preset(project_dir)
    return open_engine(project_dir)


def read_only(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one command where the project is on a read-only file system."""
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
    """Each command says what is wrong in the system's words; what can be looked at is there."""
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
    """A run whose directory may not be written to keeps the state that was written last, with the reason."""
    _, lock = make_run(engine.project)
    os.close(lock)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    (run,) = engine.snapshots()
    assert (True, "its directory is not writable") == (run.elsewhere, run.unwritable)
    monkeypatch.undo()
    assert ["failed"] == [run.status for run in engine.snapshots()]
