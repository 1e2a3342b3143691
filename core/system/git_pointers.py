"""The small files by which git finds a repository: `.git` of a linked working tree, `commondir` and `HEAD`."""

from __future__ import annotations

import os

from . import files

_LONGEST = 16 * 1024


def read_pointer(path: str) -> str:
    """Return the text of a small file that names a path; empty if it is missing or cannot be a name."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LONGEST:
            return ""
    except (OSError, ValueError):
        return ""
    text = os.fsdecode(files.content(path)).strip()
    return "" if "\0" in text else text


def directories_of(root: str, dot_git: str) -> tuple[str, str]:
    """Return the git directory and the common directory that `dot_git`, a file or directory in `root`, leads to."""
    git_dir = dot_git
    if os.path.isfile(dot_git):
        git_dir = os.path.join(root, read_pointer(dot_git).removeprefix("gitdir:").strip())
    return git_dir, os.path.join(git_dir, read_pointer(os.path.join(git_dir, "commondir")))
