"""A repository's worktrees, and their branches."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ..errors import SubdeckError
from ..system import files
from ..text.plain import one_line
from .program import Git, GitError, version
from .repository import Repository

_NULLS = (2, 36)
"""The first git that lists worktrees with null bytes, so paths may have line breaks."""
_MOST_NAME = 60
_FORM = "%(refname:lstrip=2)%00%(objectname)%00%(worktreepath)%00"


class Worktree(Struct, frozen=True):
    """A worktree in git's list, which may no longer exist."""

    path: str
    head: str = ""
    branch: str = ""
    """Short name; empty if HEAD is detached."""
    locked: str | None = None
    """Why it is locked; None if it is not."""
    prunable: str = ""
    """Why git would prune it; empty if it would not."""


class Branch(Struct, frozen=True):
    name: str
    commit: str
    worktree: str = ""
    """Where it is checked out; empty if it is not."""


def add(
    repository: Repository,
    path: str,
    branch: str,
    commit: str,
    *,
    is_new: bool = True,
    checks_out: bool = True,
    patience: float = 600.0,
) -> None:
    """Add a worktree at an unused path, on a new branch at a commit; or on an existing branch, which must still be at
    that commit (`is_new` is False). Without `checks_out` it stays empty.

    Hooks do not run. On failure or timeout both worktree and branch are removed. Raises GitError and OSError.
    """
    files.make_private_directory(os.path.dirname(path))
    if os.path.lexists(path):
        raise GitError("the path already exists", where=path)
    check_branch(branch)
    git = Git(repository.root or repository.git_dir, settings=(("checkout.workers", "0"),), patience=patience)
    tip = _tip(git, branch)
    if is_new and tip:
        raise GitError(f"the branch {branch} already exists", where=repository.root)
    if not is_new and tip != commit:
        what = "was moved" if tip else "no longer exists"
        raise GitError(f"the branch {branch}, created for it, {what}", where=repository.root)
    command = ("worktree", "add", "--quiet", *(() if checks_out else ("--no-checkout",)))
    try:
        if is_new:
            create_branches(repository, {branch: commit})
        git.run(*command, "--", path, branch)
    except GitError:
        _take_back(repository, path, branch, commit)
        raise


def check_out(path: str, *, patience: float = 600.0) -> None:
    """Write the files of a worktree added without them. Raises GitError."""
    git = Git(path, settings=(("checkout.workers", "0"),), patience=patience)
    git.run("reset", "--hard", "--quiet", "--no-recurse-submodules")


def _take_back(repository: Repository, path: str, branch: str, commit: str) -> None:
    """Remove the remains of a worktree that could not be added.

    Do not use `git worktree prune`: it would drop the user's worktrees on a disk that is not mounted.
    """
    git = Git(repository.root or repository.git_dir)
    removal = ("worktree", "remove", "--force", "--force", "--", path)
    if git.ask(*removal).code:
        files.remove_tree(path)
        git.ask(*removal)
    git.ask("update-ref", "-d", f"refs/heads/{branch}", commit)


def create_branches(repository: Repository, commits: Mapping[str, str]) -> None:
    """Create branches by name, each at a commit: all or none. Raises GitError, also if one exists."""
    for name in commits:
        check_branch(name)
    lines = "".join(f"create refs/heads/{name} {commit}\n" for name, commit in commits.items())
    repository.git.run("update-ref", "--stdin", input=os.fsencode(lines))


def remove(repository: Repository, path: str) -> None:
    """Remove a worktree with its content, even if its directory is gone. Raises GitError."""
    Git(repository.root or repository.git_dir).run("worktree", "remove", "--force", "--force", "--", path)


def remove_files(path: str) -> None:
    """Remove a path, including read-only directories. Raises OSError."""
    if not os.path.lexists(path):
        return
    files.remove_tree(path)
    if os.path.lexists(path):
        for parent, names, _ in os.walk(path):
            for directory in (parent, *(os.path.join(parent, name) for name in names)):
                if stat.S_ISDIR(os.lstat(directory).st_mode):
                    os.chmod(directory, 0o700)
        shutil.rmtree(path)


def listed(repository: Repository) -> tuple[Worktree, ...]:
    """Return all worktrees of a repository, the main one first. Raises GitError."""
    has_nulls = version() >= _NULLS
    output = repository.git.run("worktree", "list", "--porcelain", *(("-z",) if has_nulls else ()))
    separator = "\0" if has_nulls else "\n"
    blocks = os.fsdecode(output).split(separator * 2)
    return tuple(_parsed(block.split(separator)) for block in blocks if block)


def _parsed(lines: Iterable[str]) -> Worktree:
    fields: dict[str, str] = {}
    for line in lines:
        word, _, value = line.partition(" ")
        fields[word] = value
    head = fields.get("HEAD", "")
    return Worktree(
        fields.get("worktree", ""),
        head if head.strip("0") else "",
        fields.get("branch", "").removeprefix("refs/heads/"),
        fields.get("locked"),
        fields.get("prunable", ""),
    )


def branches(repository: Repository, prefix: str) -> tuple[Branch, ...]:
    """Return the branches below a prefix such as `subdeck`, by name. Raises GitError."""
    return _branches_matching(repository.git, f"refs/heads/{prefix.rstrip('/')}/")


def branch(repository: Repository, name: str) -> Branch | None:
    """Return one branch; None if it does not exist. Raises GitError."""
    return next((each for each in _branches_matching(repository.git, f"refs/heads/{name}") if each.name == name), None)


def _branches_matching(git: Git, pattern: str) -> tuple[Branch, ...]:
    fields = os.fsdecode(git.run("for-each-ref", f"--format={_FORM}", pattern)).split("\0")
    triples = zip(fields[::3], fields[1::3], fields[2::3], strict=False)
    return tuple(Branch(name.removeprefix("\n"), commit, worktree) for name, commit, worktree in triples)


def delete_branch(repository: Repository, name: str, commit: str) -> bool:
    """Delete a branch if it is still at a commit and not checked out; return whether it was. Raises GitError."""
    existing = branch(repository, name)
    if existing is None or existing.commit != commit or existing.worktree:
        return False
    repository.git.run("update-ref", "-d", f"refs/heads/{name}", commit)
    return True


def _tip(git: Git, branch: str) -> str:
    """Return a branch's commit; empty if it does not exist."""
    answer = git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}")
    return os.fsdecode(answer.output).strip() if not answer.code else ""


def check_branch(name: str) -> None:
    """Raise GitError if the branch name is invalid."""
    if name.startswith("-") or Git("/", is_own=True).ask("check-ref-format", f"refs/heads/{name}").code:
        raise GitError("not a valid branch name", where=name)


def fit(words: str) -> str:
    """Make a branch name part from any words, such as a preset's name; `run` if nothing remains."""
    name = re.sub(r"[^\w.+-]+", "-", words).strip("-._")[:_MOST_NAME]
    name = re.sub(r"\.{2,}", ".", name).removesuffix(".lock").strip("-._")
    return name or "run"


# --- sparse checkouts ------------------------------------------------------------------------------------------------


def cone(directories: Sequence[str]) -> bytes:
    """Return sparse-checkout patterns for some directories and the files in their parents; empty if all are wanted.
    Raises SubdeckError if one is not a directory of a snapshot.
    """
    if not directories:
        return b""
    included = {inside(directory) for directory in directories}
    above: set[str] = set()
    for directory in included:
        while directory := os.path.dirname(directory):
            above.add(directory)
    lines = ["/*", "!/*/"]
    for directory in sorted(included | above):
        parents = (directory[:end] for end, character in enumerate(directory) if character == "/")
        if directory in included and not any(parent in included for parent in parents):
            lines.append(f"/{_escaped(directory)}/")
        elif directory not in included:
            lines += [f"/{_escaped(directory)}/", f"!/{_escaped(directory)}/*/"]
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")


def _escaped(directory: str) -> str:
    return "".join(f"\\{character}" if character in "\\*?[]" else character for character in directory)


def inside(directory: str) -> str:
    """Return a directory's plain path in a snapshot. Raises SubdeckError if it is invalid."""
    parts = directory.rstrip("/").split("/")
    if not all(parts) or any(part in (".", "..") or part.lower() == ".git" for part in parts) or "\n" in directory:
        raise SubdeckError("not a directory of the snapshot", where=one_line(directory, 200))
    return "/".join(parts)
