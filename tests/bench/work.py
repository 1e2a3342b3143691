"""Snapshots and worktrees of a large repository, against git's own operations."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

from subdeck.core.git import worktrees
from subdeck.core.git.repository import Repository, find
from subdeck.core.git.snapshot import Store

from .figures import Figure, median_ms, quietly, usually

FILES = usually(50_000, smoke=100)
IN_EACH = usually(50, smoke=5)
TURNS = usually(7, smoke=1)
TREES = usually(3, smoke=1)
SIZE = 10_000
MOST = 2.0
MOST_WORKTREE = 1.3
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "core.looseCompression=0")


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        root, state = os.path.join(directory, "repository"), os.path.join(directory, "state")
        _make(root)
        found = find(root)
        assert found is not None
        yield from _snapshots(found, state)
        yield _worktrees(found, state)


def _make(root: str) -> None:
    text = " ".join(f"{number * 2654435761 % 2**32:08x}" for number in range(SIZE))
    for number in range(FILES // IN_EACH):
        place = os.path.join(root, f"part{number % 20}", f"package{number}")
        os.makedirs(place)
        for name in range(IN_EACH):
            begin = (number * IN_EACH + name) % (len(text) - SIZE)
            with open(os.path.join(place, f"module{name}.txt"), "w", encoding="utf-8") as file:
                file.write(f"{number} {name}\n{text[begin : begin + SIZE]}\n")
    quietly(*_GIT, "init", "-q", cwd=root)
    quietly(*_GIT, "add", "-A", cwd=root)
    quietly(*_GIT, "commit", "-q", "-m", "all", cwd=root)


def _snapshots(repository: Repository, state: str) -> Iterator[Figure]:
    """A run takes one before, starting only with the user's index, and one after it has changed files."""
    root = repository.root
    times: dict[Callable[[int], object], list[float]] = {}

    def status(turn: int) -> None:
        quietly("git", "status", cwd=root)

    def before(turn: int) -> None:
        _take(root, f"{state}/{turn}")

    def after(turn: int) -> None:
        _take(root, f"{state}/{turn}")

    for turn in range(TURNS):
        for look in (status, before, after):
            if look is after:
                for part in range(20):
                    with open(f"{root}/part{part}/package{part}/module{turn}.txt", "a", encoding="utf-8") as file:
                        file.write("changed\n")
                    with open(f"{root}/part{part}/package{part}/new{turn}.txt", "w", encoding="utf-8") as file:
                        file.write("new\n")
            started = time.perf_counter()
            look(turn)
            times.setdefault(look, []).append((time.perf_counter() - started) * 1000)
        quietly(*_GIT, "checkout", "-q", ".", cwd=root)
        quietly(*_GIT, "clean", "-fdq", cwd=root)
        quietly(*_GIT, "status", cwd=root)
    floor, first, second = (sorted(taken)[len(taken) // 2] for taken in times.values())
    floor_text = f"git status: {floor:.0f} ms"
    for name, taken in (("before", first), ("after, 40 files changed", second)):
        ratio = taken / floor
        words = f"snapshot of {FILES:,} files {name}"
        yield Figure(words, f"{ratio:.2f}x ({taken:.0f} ms)", floor_text, f"{MOST:.0f}x", ratio <= MOST)


def _take(root: str, directory: str) -> None:
    found = find(root)
    assert found is not None
    Store(directory).take(found)


def _worktrees(repository: Repository, state: str) -> Figure:
    path = os.path.join(state, "tree")
    head = str(repository.head)

    def theirs() -> float:
        taken = median_ms(lambda: quietly("git", "worktree", "add", "-q", "-b", "x", path, cwd=repository.root), 1)
        return _removed(taken)

    def ours() -> float:
        def make() -> None:
            taken = Store(os.path.join(state, "base")).take(repository, into_repository=True)
            assert taken.tree == repository.tree
            worktrees.add(repository, path, "x", head, checks_out=False)
            worktrees.check_out(path, patience=600)

        return _removed(median_ms(make, 1))

    def _removed(taken: float) -> float:
        worktrees.remove(repository, path)
        shutil.rmtree(os.path.join(state, "base"), ignore_errors=True)
        quietly("git", "branch", "-q", "-D", "x", cwd=repository.root)
        subprocess.run(("sync", "-f", state), check=False)
        return taken

    times: dict[Callable[[], float], list[float]] = {theirs: [], ours: []}
    for turn in range(TREES):  # the second one finds the objects in memory, and the disk busy
        for make in (theirs, ours) if turn % 2 else (ours, theirs):
            times[make].append(make())
    floor, taken = (sorted(taken)[TREES // 2] for taken in times.values())
    ratio = taken / floor
    name = f"worktree of {FILES:,} files, {FILES * SIZE // 10**6} MB"
    floor_text = f"git worktree add: {floor:.0f} ms"
    return Figure(name, f"{ratio:.2f}x ({taken:.0f} ms)", floor_text, f"{MOST_WORKTREE}x", ratio <= MOST_WORKTREE)
