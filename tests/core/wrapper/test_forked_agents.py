"""Agents that run in the fork of a wrapper have the surroundings of agents that are started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.factories import PUPPET, end_of, open_engine, request, wait_for_end

pytestmark = pytest.mark.processes

LOOKS = (
    "bash grep SigBlk /proc/self/status > looks",  # inherited; the agent blocks all while it starts a program
    "bash grep '^Sig[IC]' /proc/$PPID/status >> looks",
    "bash for fd in /proc/$PPID/fd/*; do readlink $fd | tr -d 0-9 | sed 's,.*/,,'; done | sort >> looks",
    "bash ps -o sid= -p $PPID | grep -qw $PPID && echo leads its session >> looks",
    "bash readlink /proc/$PPID/cwd >> looks; umask >> looks; env | cut -d= -f1 | sort >> looks",
    "bash tr '\\0' '\\n' < /proc/$PPID/environ | grep ^SUBDECK_ | sed 's/[0-9a-f-]*$//' | sort >> looks",
)


def looks(project_dir: Path) -> str:
    engine = open_engine(project_dir, PUPPET)
    (run,) = engine.launch([request(*LOOKS, "say seen", "finish")], background=False)
    run = wait_for_end(engine, run.run_id)
    assert ("completed", "seen") == (run.status, end_of(run).message)
    return Path(os.path.realpath(project_dir), "looks").read_text()


def test_both_have_the_same(project_dir: Path, request: pytest.FixtureRequest) -> None:
    """Signals, streams, session, directory and environment do not show how the agent was started."""
    started = looks(project_dir)
    request.getfixturevalue("forked_wrappers")
    assert started == looks(project_dir)
    assert "leads its session" in started
