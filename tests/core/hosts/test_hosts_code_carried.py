"""The files of runs over real carriers: every part has its own process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.engine import Engine

from ...factories import open_engine, result_of, start, wait_for_end
from ...waiting import wait_until
from ..git.repositories import git, make, write
from .clusters import trial
from .sshd import SshHost
from .test_hosts_ssh_runs import end_relay
from .traveling import own

pytestmark = [pytest.mark.timeout(180), pytest.mark.processes]
LARGE = 6 * 1024 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = own(make(tmp_path / "mine", {"a.txt": "one\n", ".gitignore": ".pi/\n"}))
    write(root, {"a.txt": "one\ntwo\n", "large.bin": os.urandom(LARGE)})
    return root


def assert_comes_back(engine: Engine, root: Path, *scripts: str) -> str:
    """Have a run change a file on its host, check its branch, and return the run's directory there."""
    run = start(engine, "bash cat large.bin large.bin > twice.bin; pwd > where", *scripts, "answer 42")
    ended = wait_for_end(engine, run.run_id)
    result = result_of(engine, ended)
    assert ("completed", "42", ()) == (result.status, result.final_text, result.artifact_errors), result.error_message
    assert "A\ttwice.bin\nA\twhere" == git(root, "diff", "--name-status", result.snapshot, result.branch)
    assert str(2 * LARGE) == git(root, "cat-file", "-s", f"{result.branch}:twice.bin")
    return git(root, "show", f"{result.branch}:where")


def test_over_ssh(root: Path, world: Path, home: Path) -> None:
    """Over ssh, files travel in pieces and resume after a cut, and so do a run's changes."""
    engine = open_engine(root, runner="hosts", hosts={"ssh": ["h1"], "code": "git", "reach": "2s"})
    try:
        with SshHost(world, "h1") as host:
            host.take_settings()
            where = assert_comes_back(engine, root)
            assert where.startswith(str(host.home))
            write(root, {"other.bin": os.urandom(LARGE)})
            run = start(engine, "save made.py x = 1", "answer 42")
            wait_until(lambda: list(host.home.rglob("incoming/*")) or run_has_ended(engine, run.run_id), "a piece")
            host.cut()
            result = result_of(engine, wait_for_end(engine, run.run_id))
            assert "A\tmade.py" == git(root, "diff", "--name-status", result.snapshot, result.branch)
    finally:
        end_relay(engine)


def run_has_ended(engine: Engine, run_id: str) -> bool:
    (run,) = engine.snapshots((run_id,))
    return run.has_ended


def test_over_a_cluster(root: Path, home: Path) -> None:
    """Files travel through a dask cluster, and a run's changes come back."""
    with trial(1, slots=2):
        engine = open_engine(root, runner="hosts", hosts={"code": "git"})
        try:
            where = assert_comes_back(engine, root)
            assert not where.startswith(str(root))
        finally:
            end_relay(engine)
