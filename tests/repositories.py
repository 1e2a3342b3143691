"""Make git repositories for tests, and worktrees of runs in them like a launch."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run.model import RunMeta
from subdeck.core.work.records import WorkRecord, tree_of, write_record

from .factories import make_finished, make_meta

IDENTITY = {f"GIT_{who}_{what}": f"{who.lower()}@test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(directory: str | Path, *arguments: str, **environment: str) -> str:
    """Run git like a user; return its output without the last newline."""
    done = subprocess.run(
        ("git", *arguments),
        cwd=directory,
        env=os.environ | IDENTITY | {"GIT_CONFIG_NOSYSTEM": "1"} | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.rstrip("\n")


def make_repository(directory: Path, **contents: str) -> Path:
    """Make a repository with one commit, on main; `contents` are further files, `_` in their names a dot."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "-q", "-b", "main")
    for name, content in {"a_txt": "one\ntwo\nthree\n", "_gitignore": "ignored\n.pi/\n", **contents}.items():
        (directory / name.replace("_", ".")).write_text(content)
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "begin")
    return directory


def make_worktree(project: Project, meta: RunMeta | None = None, *, base: str = "HEAD") -> tuple[RunMeta, Path]:
    """Make a finished run with its own worktree; return its meta and the worktree."""
    meta = make_finished(project, meta or make_meta(preset="scout"))
    root = project.root
    directory = paths.work_dir(project, meta.run_id)
    branch = f"subdeck/scout-{meta.short_id}"
    record = WorkRecord(
        run_id=meta.run_id,
        project=root,
        root=root,
        common_dir=os.path.realpath(os.path.join(root, git(root, "rev-parse", "--git-common-dir"))),
        branch=branch,
        base=git(root, "rev-parse", base),
        head=git(root, "rev-parse", "HEAD"),
        made_at=paths.now_iso(),
    )
    write_record(directory, record)
    git(root, "worktree", "add", "-q", "--no-track", "-b", branch, tree_of(directory), record.base)
    return meta, Path(tree_of(directory))


def commit(tree: Path, name: str = "b.txt", content: str = "b\n") -> str:
    """Commit all files of a worktree and a further one; return the commit."""
    (tree / name).write_text(content)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", f"change {name}")
    return git(tree, "rev-parse", "HEAD")


def kept(*places: Path) -> Callable[[], None]:
    """Copy directories; return a function that restores them, quicker than making them again."""
    copies = {place: place.with_name(f"{place.name}-kept") for place in places}
    for place, copy in copies.items():
        subprocess.run(["cp", "-a", place, copy], check=True)

    def put_back() -> None:
        for place, copy in copies.items():
            shutil.rmtree(place)
            subprocess.run(["cp", "-a", copy, place], check=True)

    return put_back


def pinned(repository: Path) -> list[str]:
    """Return everything that a repository refers to: its files except objects, refs and worktrees."""
    common = repository / git(repository, "rev-parse", "--git-common-dir")
    kept = sorted(str(path.relative_to(common)) for path in common.rglob("*") if "objects" not in path.parts)
    return [*kept, git(repository, "for-each-ref"), git(repository, "worktree", "list", "--porcelain")]
