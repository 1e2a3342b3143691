"""Three-way merges of trees, without any working tree; and commits made of what comes of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from .names import worded
from .program import AT_WORK, MERGING, Git, GitError, check_version, failure
from .repository import Repository

_NOBODY = ("-c", "user.name=subdeck", "-c", "user.email=subdeck@localhost")
"""Who makes commits that nobody sees, and those of a user who has told git no name."""
_QUIET = ("Auto-merging",)


class Conflict(Struct, frozen=True):
    """A file that both sides changed in ways that do not go together."""

    path: str
    why: str
    """What git says of it: `Merge conflict in a.txt`."""
    kind: str = ""
    """git's word for its kind: `content`, `add/add`, `modify/delete`."""


class Merge(Struct, frozen=True):
    tree: str
    """What comes of it; with conflicts there are git's marks in it."""
    conflicts: tuple[Conflict, ...] = ()


def can_merge() -> None:
    """Raise GitMissing where git is missing, or older than 2.38."""
    check_version(MERGING, "to apply changes")


def merged(git: Git, base: str, ours: str, theirs: str) -> Merge:
    """Merge two trees or commits that began with `base`; nothing is written but objects. Raises GitError."""
    can_merge()
    before, mine, other = (_tree_of(git, name) for name in (base, ours, theirs))
    if mine in (before, other):
        return Merge(other)
    if before == other:
        return Merge(mine)
    root = _passing_commit(git, before)
    sides = (_passing_commit(git, mine, root), _passing_commit(git, other, root))
    answer = git.ask(
        "-c", "merge.directoryRenames=false", "-c", "merge.conflictStyle=merge", "merge-tree", "--write-tree", "-z",
        "--allow-unrelated-histories", *sides,
    )  # fmt: skip
    if answer.code not in (0, 1):
        raise failure(("merge-tree",), answer, git.directory)
    tree, _, rest = answer.output.partition(b"\0")
    return Merge(os.fsdecode(tree), tuple(_conflicts(rest)) if answer.code else ())


def _tree_of(git: Git, name: str) -> str:
    return os.fsdecode(git.run("rev-parse", "--verify", "--end-of-options", f"{name}^{{tree}}")).strip()


def _passing_commit(git: Git, tree: str, *parents: str) -> str:
    """Make a commit that nothing refers to: git merges commits, not trees."""
    words = [word for parent in parents for word in ("-p", parent)]
    return os.fsdecode(git.run(*_NOBODY, "commit-tree", tree, *words, input=b"-\n")).strip()


def _conflicts(rest: bytes) -> Iterator[Conflict]:
    """Parse the files with their stages, and the messages after an empty field: how many paths, they, kind, words."""
    fields = rest.split(b"\0")
    end = fields.index(b"") if b"" in fields else len(fields)
    paths = dict.fromkeys(field.partition(b"\t")[2] for field in fields[:end])
    said: dict[bytes, tuple[str, str]] = {}
    messages = iter(fields[end + 1 :])
    for count in messages:
        if not count.isdigit():
            break
        named = [next(messages) for _ in range(int(count))]
        kind, words = os.fsdecode(next(messages)), os.fsdecode(next(messages)).strip()
        if kind not in _QUIET:
            head = re.match(r"CONFLICT \((.*?)\): ", words)
            for path in named:
                said.setdefault(path, (head[1], words[head.end() :]) if head else (kind, words))
    for path in paths:
        kind, words = said.get(path, ("", "both sides changed it"))
        yield Conflict(worded(path), words, kind)


def commit(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Make a commit in the name of the user; nothing refers to it yet. Raises GitError.

    Where git knows no name of his, subdeck's stands there.
    """
    arguments = ("commit-tree", tree, *(word for parent in parents for word in ("-p", parent)))
    given = message.encode("utf-8", "replace")
    answer = git.ask(*arguments, input=given)
    if answer.code and re.search(r"tell me who you are|identity|auto-detect", answer.said):
        answer = git.ask(*_NOBODY, *arguments, input=given)
    if answer.code:
        raise failure(arguments, answer, git.directory)
    return os.fsdecode(answer.output).strip()


def advance(repository: Repository, commit_id: str, *, patience: float = 120.0) -> None:
    """Bring the branch that is checked out to a commit that contains it, with files and index, as `merge --ff-only`.

    Files that are not committed stay, also ignored ones; where one is in the way nothing is done. Raises GitError.
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
