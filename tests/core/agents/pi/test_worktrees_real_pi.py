"""pi in a worktree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.work.operation import APPLY

from tests.factories import result_of
from tests.real.lab import NEWER_PI, Lab
from tests.real.model_server import called, said, texts
from tests.repositories import git, make_repository

pytestmark = [pytest.mark.pi, NEWER_PI]


@pytest.fixture
def pi(pi: Lab) -> Lab:
    make_repository(pi.project)
    return pi


def test_it_edits_a_copy_which_is_applied(pi: Lab) -> None:
    """pi works only in the worktree, and its changes can be applied. Its conversation is stored elsewhere and can be
    continued.
    """
    edit = {"path": "a.txt", "edits": [{"oldText": "two", "newText": "zwei"}]}
    pi.preset("worktree: true")
    pi.script(called(("edit", edit), ("bash", {"command": "pwd > where.txt"})), said("Done."), said("Still here."))
    (pi.project / "mine.txt").write_text("mine\n")
    run = pi.run("Translate.")
    assert "completed" == run.status, result_of(pi.engine, run)
    assert run.meta.worktree
    tree = Path(run.meta.cwd)
    assert f"{os.path.realpath(tree)}\n" == (tree / "where.txt").read_text()
    assert ("one\nzwei\nthree\n", "mine\n") == ((tree / "a.txt").read_text(), (tree / "mine.txt").read_text())
    assert "?? mine.txt" == git(pi.project, "status", "--porcelain")
    changes = result_of(pi.engine, run).changes
    assert changes and ["a.txt", "where.txt"] == [file.path for file in changes.named]

    onward = pi.run("Go on.", child_session=result_of(pi.engine, run).child_session_id, follow_up=run.run_id)
    assert str(tree) == onward.meta.cwd
    assert ["Translate.", "Go on."] == texts(pi.requests[-1])

    pi.engine.work.act(pi.engine.work.plan(APPLY, run, files=["a.txt"]))
    assert " M a.txt\n?? mine.txt" == git(pi.project, "status", "--porcelain")
