"""Three-way merges of trees, without a working tree, and commits of the results."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from .names import worded
from .program import AT_WORK, MERGING, Git, GitError, check_version, failure
from .repository import Repository

_NOBODY = ("-c", "user.name=subdeck", "-c", "user.email=subdeck@localhost")
"""Author of commits that are not shown, and for a user without a name in git."""
_QUIET = ("Auto-merging",)


class Conflict(Struct, frozen=True):
    """A file with conflicting changes on both sides."""

    path: str
    why: str
    """git's message, such as `Merge conflict in a.txt`."""
    kind: str = ""
    """git's name for its kind: `content`, `add/add`, `modify/delete`."""


class Merge(Struct, frozen=True):
    tree: str
    """The result; conflicts have git's markers in it."""
    conflicts: tuple[Conflict, ...] = ()


def can_merge() -> None:
    """Raise GitMissing if git is missing, or older than 2.38."""
    check_version(MERGING, "to apply changes")


def merged(git: Git, base: str, ours: str, theirs: str) -> Merge:
    """Merge two trees or commits that share `base`; only objects are written. Raises GitError."""
    can_merge()
    base_tree, our_tree, their_tree = git.trees(base, ours, theirs)
    if our_tree in (base_tree, their_tree):
        return Merge(their_tree)
    if base_tree == their_tree:
        return Merge(our_tree)
    root = _passing_commit(git, base_tree)
    sides = (_passing_commit(git, our_tree, root), _passing_commit(git, their_tree, root))
    answer = git.ask(
        "-c", "merge.directoryRenames=false", "-c", "merge.conflictStyle=merge", "merge-tree", "--write-tree", "-z",
        "--allow-unrelated-histories", *sides,
    )  # fmt: skip
    if answer.code not in (0, 1):
        raise failure(("merge-tree",), answer, git.directory)
    tree, _, listing = answer.output.partition(b"\0")
    return Merge(os.fsdecode(tree), tuple(_conflicts(listing)) if answer.code else ())


def _passing_commit(git: Git, tree: str, *parents: str) -> str:
    """Create an unreferenced commit: git merges commits, not trees."""
    words = [word for parent in parents for word in ("-p", parent)]
    return os.fsdecode(git.run(*_NOBODY, "commit-tree", tree, *words, input=b"-\n")).strip()


def _conflicts(listing: bytes) -> Iterator[Conflict]:
    """Parse the files with stages, and the messages after an empty field: path count, paths, kind, text."""
    fields = listing.split(b"\0")
    end = fields.index(b"") if b"" in fields else len(fields)
    paths = dict.fromkeys(field.partition(b"\t")[2] for field in fields[:end])
    descriptions: dict[bytes, tuple[str, str]] = {}
    messages = iter(fields[end + 1 :])
    for count in messages:
        if not count.isdigit():
            break
        named = [next(messages) for _ in range(int(count))]
        kind, words = os.fsdecode(next(messages)), os.fsdecode(next(messages)).strip()
        if kind not in _QUIET:
            head = re.match(r"CONFLICT \((.*?)\): ", words)
            for path in named:
                descriptions.setdefault(path, (head[1], words[head.end() :]) if head else (kind, words))
    for path in paths:
        kind, words = descriptions.get(path, ("", "both sides changed it"))
        yield Conflict(worded(path), words, kind)


def commit(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Create a commit as the user, without a reference to it. Raises GitError.

    Without a user name in git, subdeck is the author.
    """
    arguments = ("commit-tree", tree, *(word for parent in parents for word in ("-p", parent)))
    content = message.encode("utf-8", "replace")
    answer = git.ask(*arguments, input=content)
    if answer.code and re.search(r"tell me who you are|identity|auto-detect", answer.stderr):
        answer = git.ask(*_NOBODY, *arguments, input=content)
    if answer.code:
        raise failure(arguments, answer, git.directory)
    return os.fsdecode(answer.output).strip()


def advance(repository: Repository, commit_id: str, *, patience: float = 120.0) -> None:
    """Fast-forward the checked-out branch to a commit, with files and index, as `merge --ff-only`.

    Uncommitted files stay, including ignored ones; if one conflicts, nothing changes. Raises GitError.
    """
    lock = os.path.join(repository.git_dir, "index.lock")
    if os.path.lexists(lock):
        raise GitError(
            f"the index is locked: {AT_WORK}",
            where=repository.root,
            hint=f"if no git command is running, remove {lock}",
            code="git.locked",
        )
    git = Git(repository.root, patience=patience)
    git.run(
        *("merge", "--ff-only", "--no-edit", "--no-autostash", "--no-overwrite-ignore", "--no-verify-signatures"),
        *("--quiet", commit_id),
    )
