"""If only git is killed during an action, or the disk is full, files are as before or after, or undo restores them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from subdeck.core.git.program import Git, GitError
from subdeck.core.work.operation import APPLY, COMMIT, DISCARD, MERGE, SAVE, SQUASH

from tests.killing import IS_WHOLE

from . import cutting
from .cutting import Act, Filler, GitShim, Scene, Stage, Trial, attempt, check, reflog, sample, state, undo

pytestmark = pytest.mark.processes

CAN_MOUNT = subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
KILLS = 2
"""Cuts per action in `make test`."""
ROOM = (0, 8)
"""Pages left free on a full disk in `make test`."""
MOST = 2000
"""The most free pages tried; every action needs fewer."""


def apply(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(APPLY, scene.run))


def merge(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(MERGE, scene.run))


def pick(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(SQUASH, scene.run))


def commit(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(COMMIT, scene.run))


def keep(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(SAVE, scene.run, name="kept/by-me"))


def discard(scene: Scene) -> object:
    return scene.engine.work.act(scene.engine.work.plan(DISCARD, scene.run))


def clean_tree(scene: Scene) -> object:
    """Remove uncommitted changes from the worktree: they would not be saved."""
    return cutting.git(scene.tree, "checkout", "-q", "--", ".")


ACTS: dict[str, tuple[Act | None, Act]] = {
    "apply": (None, apply),
    "merge": (None, merge),
    "pick": (None, pick),
    "commit": (None, commit),
    "keep": (clean_tree, keep),
    "discard": (None, discard),
}
"""The preparation of each action, and the action."""
CASES = [(name, is_undo) for name in ACTS for is_undo in (False, True)]


def staged(base: Path, name: str, is_undo: bool) -> tuple[Stage, Trial]:
    begin, act = ACTS[name]

    def prepare(scene: Scene) -> None:
        if begin is not None:
            begin(scene)
        if is_undo:
            act(scene)

    stage = Stage(base, prepare)
    does = undo if is_undo else act
    before = state(stage.scene)
    does(stage.scene)
    return stage, Trial(does, before, state(stage.scene), is_undo)


@pytest.mark.parametrize(("name", "is_undo"), CASES)
def test_git_alone_is_killed(tmp_path: Path, name: str, is_undo: bool, record_property: Callable[..., None]) -> None:
    """A kill at any step leaves true reports, a complete undo, and an action that can be repeated."""
    stage, trial = staged(tmp_path / "project", name, is_undo)
    shim = GitShim(tmp_path / "shim")
    scene = stage.reset()
    cuts = sample(shim.cuts(lambda: trial.act(scene)), 1 if is_undo else KILLS)
    record_property("cuts", len(cuts))
    for cut in cuts:
        scene = stage.reset()
        tips = reflog(scene)
        with shim.cutting(str(cut.at), cut.how):
            error = attempt(trial.act, scene)
        try:
            check(trial, scene, error, tips)
        except AssertionError as failed:
            raise AssertionError(f"{name} {cut}: {failed}") from failed


def test_a_killed_git_has_not_answered(tmp_path: Path) -> None:
    """A killed git raises an error; it never counts as a "no"."""
    shim = GitShim(tmp_path / "shim")
    known = Git("/", is_own=True)
    assert known.ask("check-ref-format", "refs/heads/a").code == 0
    with shim.cutting("1", "before"), pytest.raises(GitError, match="signal 9"):
        known.ask("check-ref-format", "refs/heads/a")


FULL = [(name, is_undo, "repository") for name in ("apply", "merge") for is_undo in (False, True)]
if IS_WHOLE:
    FULL = [(name, is_undo, where) for name, is_undo in CASES for where in ("repository", "state")]


@pytest.mark.skipif(not CAN_MOUNT, reason="may not mount")
@pytest.mark.parametrize(("name", "is_undo", "where"), FULL)
def test_the_disk_is_full(
    tmp_path: Path, name: str, is_undo: bool, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up at any page leaves true reports, a complete undo, and an action that can be repeated."""
    disk, other = tmp_path / "disk", tmp_path / "other"
    other.mkdir()
    base, home = (disk, other) if where == "repository" else (other, disk)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "home" / "state"))
    monkeypatch.setenv("HOME", str(home / "home"))

    def play() -> None:
        cutting.mount_disk(disk)
        (home / "home").mkdir()
        stage, trial = staged(base / "project", name, is_undo)
        filler, done = Filler(disk), 0
        for pages in range(MOST) if IS_WHOLE else ROOM:
            scene = stage.reset()
            tips = reflog(scene)
            filler.leave(pages)
            error = attempt(trial.act, scene)
            done = 0 if error else done + 1
            while error is not None and scene.engine.last_act() and attempt(undo, scene) is None:
                error = OSError("taken back at once")
            filler.remove()
            try:
                check(trial, scene, error, tips)
            except AssertionError as failed:
                raise AssertionError(f"{name}, {pages} pages free: {failed}") from failed
            if done > 1:
                return  # more room changes nothing
        assert not IS_WHOLE, "it is never done"

    cutting.in_mounts_of_its_own(play)
