"""Interrupt an action on a repository: git is killed at one step of one of its commands, or the disk becomes full.

The repository is made once and restored to the same directory before each cut.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import open_engine
from tests.killing import IS_WHOLE
from tests.repositories import commit, git, kept, make_repository, make_worktree
from tests.soak import strace

CALLS = (
    "write", "pwrite64", "rename", "unlink", "unlinkat", "mkdir", "rmdir", "link", "symlink", "ftruncate", "chmod",
    "fchmod", "fsync",
)  # fmt: skip
"""System calls at which git is killed: the calls that change a file or report to subdeck."""
SHIM = """#!/bin/sh
[ -e {place}/on ] || exec {git} "$@"
read -r number < {place}/count
number=$((number + 1))
echo $number > {place}/count
read -r at how < {place}/on
[ "$at" != all ] || exec {strace} -D -q -o {place}/log.$number -e trace={calls} {git} "$@"
[ "$at" = $number ] || exec {git} "$@"
case $how in
    before) kill -9 $$ ;;
    after) {git} "$@"; kill -9 $$ ;;
    *.*) timeout -s KILL $how {git} "$@"; kill -9 $$ ;;
    *) call=${{how%%:*}}
        exec {strace} -D -q -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=${{how##*:}} {git} "$@" ;;
esac
"""
MOMENTS = ("0.001", "0.003", "0.006")
"""Seconds after which a command is killed if its system calls cannot be selected."""
LOCKED = re.compile(r"\S+\.lock\b")
DISK_BYTES = 16 * 1024 * 1024
PAGE = 4096


class Cut(NamedTuple):
    """Where git is killed: the number of the action's command, from 1, and how (in the shim's notation)."""

    at: int
    how: str


class Scene(Struct):
    engine: Engine
    run: RunSnapshot
    root: Path
    tree: Path


def make_scene(base: Path) -> Scene:
    """Make a run that has changed, added, renamed and deleted files, with uncommitted work in its worktree; the user
    has edits, a staged file, a stash and untracked files.
    """
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    text = "".join(f"line {number}\n" for number in range(2_000))
    root = make_repository(
        base, b_txt="begin\n", long_txt=text, old_txt="old\n", going_txt="going\n", tool_sh="#!/bin/sh\n"
    )
    (root / "a.txt").write_text("stashed\n")
    git(root, "stash", "-q")
    engine = open_engine(root)
    meta, tree = make_worktree(engine.project)
    (tree / "long.txt").write_text(text.replace("line", "row"))
    (tree / "going.txt").unlink()
    (tree / "old.txt").rename(tree / "renamed.txt")
    (tree / "tool.sh").chmod(0o755)
    (tree / "deep").mkdir()
    (tree / "deep" / "new.txt").write_text("new\n")
    (tree / "link").symlink_to("a.txt")
    commit(tree, "new.txt")
    (tree / "b.txt").write_text("theirs\n")
    (root / "a.txt").write_text("mine\n")
    (root / "staged.txt").write_text("staged\n")
    (root / "untracked.txt").write_text("untracked\n")
    (root / "ignored").write_text("ignored\n")
    git(root, "add", "staged.txt")
    (run,) = engine.snapshots((meta.run_id,))
    return Scene(engine, run, root, tree)


def _files(root: Path) -> dict[str, object]:
    return {
        str(path.relative_to(root)): os.readlink(path)
        if path.is_symlink()
        else (path.stat().st_mode, path.read_bytes())
        for path in root.rglob("*")
        if not path.is_dir() and ".git" not in path.parts and ".pi" not in path.parts
    }


class State(NamedTuple):
    """The user's and the run's files and commits; commits without their times."""

    files: object
    staged: str
    refs: object
    status: str
    worktree: object


def state(scene: Scene) -> State:
    """Read files with their modes and contents, index, branches with their trees, stash, and the run's worktree."""
    root, tree = scene.root, scene.tree
    refs = {
        name: git(root, "log", "-2", "--first-parent", "--format=%T %s", name, "--")
        for name in git(root, "for-each-ref", "--format=%(refname)").splitlines()
    }
    # Two lines of history are ordered by the second in which their commits were made.
    history = sorted(git(root, "log", "--format=%T %s", "HEAD", "--").splitlines())
    refs["HEAD"] = f"{git(root, 'symbolic-ref', 'HEAD')} {history}"
    return State(_files(root), git(root, "ls-files", "--stage"), refs, git(root, "status", "--porcelain"), _seen(tree))


def _seen(tree: Path) -> object:
    """Read a worktree; git may not recognize a half-restored one."""
    if not tree.exists():
        return None
    asked = [
        subprocess.run(("git", *words), cwd=tree, capture_output=True)
        for words in (("status", "--porcelain"), ("symbolic-ref", "-q", "HEAD"))
    ]
    return (_files(tree), *((done.returncode, done.stdout) for done in asked))


def reflog(scene: Scene) -> list[str]:
    """Return the former tips of HEAD, the oldest first."""
    return git(scene.root, "log", "-g", "--format=%H", "HEAD", "--").splitlines()[::-1]


Act = Callable[[Scene], object]


def undo(scene: Scene) -> object:
    act = scene.engine.last_act()
    assert act is not None, "nothing to undo"
    return scene.engine.take_back(act)


class Stage:
    """A scene that is replayed many times, each time from the same files."""

    def __init__(self, base: Path, begin: Act | None) -> None:
        """Run `begin` before the action that is cut."""
        self._base = base
        self.scene = make_scene(base)
        self.first = state(self.scene)
        if begin is not None:
            begin(self.scene)
        self._put_back = kept(base, Path(os.environ["HOME"]))

    def reset(self) -> Scene:
        self._put_back()
        engine = Engine.open(str(self._base), session="operator")
        runs = engine.snapshots((self.scene.run.run_id,))
        self.scene = Scene(engine, runs[0] if runs else self.scene.run, self._base, self.scene.tree)
        return self.scene


class GitShim:
    """A shim before git on PATH that kills one chosen command."""

    def __init__(self, place: Path) -> None:
        self._place = place
        shims = place / "bin"
        shims.mkdir(parents=True)
        words = {
            "place": shlex.quote(str(place)), "git": shlex.quote(shutil.which("git") or ""),
            "strace": shutil.which("strace") or "", "calls": ",".join(CALLS),
        }  # fmt: skip
        (shims / "git").write_text(SHIM.format(**words))
        (shims / "git").chmod(0o755)
        os.environ["PATH"] = f"{shims}:{os.environ['PATH']}"

    @contextmanager
    def cutting(self, at: str, how: str = "") -> Iterator[None]:
        (self._place / "count").write_text("0\n")
        (self._place / "on").write_text(f"{at} {how}\n")
        try:
            yield
        finally:
            (self._place / "on").unlink()

    def cuts(self, act: Callable[[], object]) -> list[Cut]:
        """Run an action; return every possible cut in it."""
        can_trace = IS_WHOLE and strace.is_usable()
        with self.cutting("all" if can_trace else "0"):
            act()
        commands = int((self._place / "count").read_text())
        found: list[Cut] = []
        for at in range(1, commands + 1):
            found.append(Cut(at, "before"))
            if can_trace:
                log = self._place / f"log.{at}"
                calls = Counter(re.findall(r"^(\w+)\(", log.read_text(), re.M))
                found += [Cut(at, f"{call}:{count}") for call, times in calls.items() for count in range(1, times + 1)]
                log.unlink()
            elif IS_WHOLE:
                found += [Cut(at, moment) for moment in MOMENTS]
            found.append(Cut(at, "after"))
        return found


def sample(cuts: list[Cut], count: int) -> list[Cut]:
    """Return some cuts of the last third, in which an action writes; all cuts for `make soak`."""
    return cuts if IS_WHOLE else cuts[len(cuts) * 2 // 3 :: max(1, len(cuts) // 3 // count)][:count]


def attempt(act: Act, scene: Scene) -> SubdeckError | OSError | None:
    """Run an action that may fail; return its error."""
    try:
        act(scene)
    except (SubdeckError, OSError) as error:
        return error
    return None


def locks(scene: Scene) -> list[Path]:
    return list((scene.root / ".git").rglob("*.lock"))


def finish(act: Act, scene: Scene) -> None:
    """Complete an action, removing the locks of a killed git as the error advises; the error must name them."""
    for _ in range(6):
        left = locks(scene)
        error = attempt(act, scene)
        if error is None:
            return
        said = f"{error} {error.hint if isinstance(error, SubdeckError) else ''}"
        assert left, f"it fails although nothing is locked: {said}"
        assert ".lock" in said or "lock" in said, f"{left} are not named: {said}"
        for lock in left:
            lock.unlink(missing_ok=True)
    raise AssertionError("it never comes to its end")


class Trial(NamedTuple):
    """An action and the states expected before and after it."""

    act: Act
    before: State
    after: State
    is_undo: bool = False


def check(trial: Trial, scene: Scene, error: SubdeckError | OSError | None, tips: list[str]) -> None:
    """Check that reports are true, and that an undo or a retry restores the state before or after an action."""
    said = f"{error} {error.hint if isinstance(error, SubdeckError) else ''}".replace("\n", " ")
    now, noted = state(scene), scene.engine.last_act()
    if error is None:
        assert trial.after == now, "it says that it was done"
    if re.search(r"nothing (was|is) (applied|merged|changed|written|done)", said):
        assert trial.before == now, f"it says: {said}"
    assert reflog(scene)[: len(tips)] == tips
    if not trial.is_undo and noted is None:
        assert now in (trial.before, trial.after), f"nothing to undo; it says: {said}"
    if trial.is_undo:
        if noted is not None:
            finish(undo, scene)
        assert trial.after == state(scene), f"the undo was not finished; it said: {said}"
        assert scene.engine.last_act() is None
        return
    if noted is not None:
        finish(undo, scene)
        assert trial.before == state(scene), f"undo does not bring back what was; it said: {said}"
        assert scene.engine.last_act() is None
    if state(scene) == trial.before:
        finish(trial.act, scene)
        assert trial.after == state(scene), "done once more, it is not what it would have been"


def in_mounts_of_its_own(do: Callable[[], None]) -> None:
    """Run a function in a process that may mount, and raise its errors; skip the test if mounting is not allowed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        try:
            do()
        except BaseException:
            os.write(writer, traceback.format_exc()[-60_000:].encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as told:
        trouble = told.read().decode()
    os.waitpid(pid, 0)
    assert not trouble, trouble


CLONE_NEWNS = 0x20000


def mount_disk(place: Path) -> None:
    """Mount a small private disk for this process and its children."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", place], check=True)


class Filler:
    """Fills a disk."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._file = place / "filler"

    @property
    def free(self) -> int:
        """Free pages."""
        found = os.statvfs(self._place)
        return found.f_bavail * found.f_frsize // PAGE

    def leave(self, pages: int) -> None:
        """Fill the disk except for this number of pages."""
        with self._file.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, self.free - pages) * PAGE)

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)
