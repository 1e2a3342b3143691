"""Real repositories for tests, and git's own view of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from subdeck.core.git.repository import Repository, find

BY = (
    "-c",
    "user.name=A",
    "-c",
    "user.email=a@example.org",
    "-c",
    "init.defaultBranch=main",
    "-c",
    "protocol.file.allow=always",
)


def git(where: Path, *words: str | bytes, check: bool = True, given: bytes = b"") -> str:
    """Run git as a user would, and return its output."""
    done = subprocess.run(["git", *BY, *words], cwd=where, check=check, capture_output=True, input=given)
    return os.fsdecode(done.stdout).rstrip("\n")


def write(root: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Write files; None removes a file."""
    for name, content in files.items():
        path = root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def make(root: Path, files: Mapping[str, str | bytes | None] | None = None, *options: str) -> Path:
    """Make a repository, with one commit if there are files."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", *options)
    if files:
        write(root, files)
        commit(root)
    return root


def commit(root: Path, message: str = "change") -> str:
    """Commit all changes; return the commit."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")


def found(directory: Path) -> Repository:
    """Find a repository that must exist."""
    repository = find(str(directory))
    assert repository is not None
    return repository


def listed(git_dir: str, tree: str) -> dict[str, str]:
    """Return the paths of a stored tree with their modes."""
    lines = subprocess.run(
        ["git", "--git-dir", git_dir, "ls-tree", "-r", "-z", tree], check=True, capture_output=True
    ).stdout.split(b"\0")
    return {os.fsdecode(line.partition(b"\t")[2]): line[:6].decode() for line in lines if line}
