"""An agent that removes the permissions of its run's files and directories, even from a user who is not root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.errors import SettingsError
from subdeck.core.run import artifacts
from subdeck.core.run.model import RunReason, RunStatus

from tests.factories import lives, open_engine, result_of, start, started, wait_for_end
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

NOBODY = "65534"
PLACES = (".pi", ".pi/subagents", ".pi/subagents/runs", ".pi/subagents/runs/$SUBDECK_RUN_ID")
FORGED = "until rm -rf {it} && echo forged > {it} && chmod 000 {it}; do :; done"


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def closing(engine: Engine, tmp_path: Path, what: str, *after: str) -> str:
    """Start a run whose agent runs a command once its wrapper knows it; return its id afterwards."""
    done, gate = tmp_path / "closed", tmp_path / "gate"
    run = start(engine, "say One.", f"wait-for {gate}", f"bash {what}; touch {done}", *after)
    started(engine, run)
    gate.touch()
    wait_until(done.exists, "the child to do it")
    return run.run_id


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can become another user")
@pytest.mark.timeout(280)
def test_as_another_user() -> None:
    """Because root ignores permissions, the tests run again as a user without root's rights."""
    root = Path(__file__).parents[3]
    with tempfile.TemporaryDirectory(prefix="subdeck-", dir="/var/tmp", ignore_cleanup_errors=True) as home:
        os.chmod(home, 0o700)
        os.chown(home, int(NOBODY), int(NOBODY))
        user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "env", "-i"]
        variables = {"HOME": home, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        python = [*user, *(f"{name}={value}" for name, value in variables.items()), sys.executable]
        if subprocess.run([*python, "-c", "import msgspec, pytest"], cwd=root, capture_output=True).returncode:
            pytest.skip("another user cannot use this Python")
        argv = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp", f"{home}/t"]
        argv += ["tests/core/project/test_spoiled_runs.py", "tests/core/project/test_spoiled_rights.py", "-k", "rights"]
        done = subprocess.run(argv, cwd=root, capture_output=True, text=True)
        assert 0 == done.returncode, done.stdout[-8000:]


def opened_elsewhere(root: str) -> Engine | None:
    """Open a project as another process does; None while a closed directory hides its settings, which is reported."""
    try:
        return Engine.open(root)
    except SettingsError as error:
        told = str(error)
    assert f"{root}/.pi/subagents/config.yaml: cannot read the file: Permission denied" == told
    return None


@pytest.mark.parametrize("force", [False, True], ids=["stop", "kill"])
@pytest.mark.parametrize("place", PLACES)
def test_a_closed_directory_is_stopped(engine: Engine, tmp_path: Path, place: str, force: bool) -> None:
    """A run in an unreadable directory is alive, can be stopped, and reports the changed permissions."""
    run_id = closing(engine, tmp_path, f"chmod 000 {engine.project.root}/{place}", "hang")
    fresh = wait_until(lambda: opened_elsewhere(engine.project.root), "the settings to be readable")
    assert (run_id,) == fresh.stop([run_id], force=force)
    ended = wait_for_end(fresh, run_id)
    assert (RunStatus.ABORTED, RunReason.KILLED if force else RunReason.STOPPED) == (ended.status, ended.reason)
    assert "permissions of the run's directory, or of one above it" in " ".join(result_of(fresh, ended).tampered)


@pytest.mark.parametrize("place", PLACES)
def test_a_closed_directory_gets_its_result(engine: Engine, tmp_path: Path, place: str) -> None:
    """A run that closes its directory and ends at once still has its real result there."""
    run_id = closing(engine, tmp_path, f"chmod 000 {engine.project.root}/{place}", "answer The truth.")
    ended = wait_for_end(engine, run_id)
    assert (RunReason.DONE, "The truth.") == (ended.reason, result_of(engine, ended).final_text)


@pytest.mark.parametrize("place", PLACES)
def test_a_closed_directory_of_a_dead_wrapper(engine: Engine, tmp_path: Path, place: str) -> None:
    """A run without its wrapper behind a closed directory is finished by its reader."""
    run_id = closing(engine, tmp_path, "true", "hang")
    directory = Path(engine.project.run_dir(run_id))
    wait_until(lambda: (facts := artifacts.read_runner(str(directory))) and facts.child_pid, "the pid of the child")
    facts = artifacts.read_runner(str(directory))
    assert facts and facts.child_pid
    os.kill(facts.pid, signal.SIGSTOP)
    os.chmod(f"{engine.project.root}/{place}".replace("$SUBDECK_RUN_ID", run_id), 0)
    os.kill(facts.pid, signal.SIGKILL)
    wait_until(lambda: not lives(facts.pid), "the wrapper to die")
    ended = wait_for_end(engine, run_id)
    assert RunReason.LOST is ended.reason
    wait_until(lambda: not lives(facts.child_pid or 0), "the child to be ended")


def test_a_forged_result_without_rights(engine: Engine, tmp_path: Path) -> None:
    """An unreadable forged result does not count: the run continues, and ends with its own."""
    forged = FORGED.format(it=f"{engine.project.runs}/$SUBDECK_RUN_ID/result.json")
    gate = tmp_path / "gate-2"
    run_id = closing(engine, tmp_path, forged, f"wait-for {gate}", "answer The truth.")
    (seen,) = Engine.open(engine.project.root).snapshots([run_id])
    assert (False, False, False) == (seen.has_ended, seen.elsewhere, seen.foreign)
    gate.touch()
    ended = wait_for_end(engine, run_id)
    result = result_of(engine, ended)
    assert (RunReason.DONE, "The truth.") == (result.reason, result.final_text)
    assert any("result.json.rejected-1" in sentence for sentence in result.tampered)


def test_the_rights_of_others_are_left_alone(tmp_path: Path, project_dir: Path) -> None:
    """The target of a link keeps its permissions."""
    from subdeck.core.system.directory import opened, regain_way

    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").mkdir(mode=0o500)
    (outside / "file").touch(mode=0o400)
    home = project_dir / ".pi/subagents"
    home.mkdir(parents=True)
    (home / "runs").symlink_to(outside)
    with pytest.raises(OSError, match="directory"):
        regain_way(f"{home}/runs/x")
    (home / paths.EVENTS).symlink_to(outside / "file")
    with opened(str(home)) as directory:
        assert not directory.regain(paths.EVENTS)
    assert (0o500, 0o400) == tuple((outside / name).stat().st_mode & 0o777 for name in ("x", "file"))
