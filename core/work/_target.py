"""The working tree that an operation writes into: whether git may write there, and restoring its earlier state."""

from __future__ import annotations

import os

from .. import paths
from ..errors import SubdeckError
from ..git.checkout import InTheWay
from ..git.configuration import value_of
from ..git.merges import Conflict, merged
from ..git.program import AT_WORK, Git, GitError
from ..git.repository import Repository
from ..git.snapshot import Store
from ..system import files
from ..text.plain import one_line
from .acts import note_undo
from .operation import Act, Undo

MERGED = "merged"
"""Store for the trees of a plan, below the directory of a run's work."""
NAMED = 5
"""Files that a sentence about an undo names."""
_REGULAR = b"100"
"""Start of a file's mode, but not of a link's: git writes links in one step."""
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}
_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "post-merge")


def check_ready(repository: Repository) -> None:
    """Raise SubdeckError if the checked-out branch cannot get a commit now."""
    where = repository.root
    check_free(repository)
    if repository.head is None:
        raise SubdeckError(
            "the repository has no commit yet", where=where, hint="make a commit; subdeck apply works without one"
        )
    if repository.branch is None:
        raise SubdeckError("no branch is checked out", where=where, hint="git switch BRANCH first")
    branch = os.path.join(repository.common_dir, "refs", "heads", repository.branch)
    _check_unlocked(repository, "HEAD", os.path.join(repository.git_dir, "HEAD.lock"))
    _check_unlocked(repository, f"branch {one_line(repository.branch)}", f"{branch}.lock")
    check_identity(repository)


def _check_unlocked(repository: Repository, name: str, lock: str) -> None:
    if os.path.lexists(lock):
        hint = f"if no git command is running, remove {one_line(lock)}"
        raise SubdeckError(f"its {name} is locked: {AT_WORK}", where=repository.root, hint=hint)


def check_free(repository: Repository) -> None:
    """Raise SubdeckError if another git command is running, or has to be continued."""
    where = repository.root
    for name, words in _UNDER_WAY.items():
        if os.path.lexists(os.path.join(repository.git_dir, name)):
            raise SubdeckError(f"{words} is in progress", where=where, hint="finish or abort it first (git status)")
    _check_unlocked(repository, "index", os.path.join(repository.git_dir, "index.lock"))


def check_identity(repository: Repository) -> None:
    """Raise SubdeckError if git has no name for the author of a commit."""
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if repository.git.ask("-c", "user.useConfigOnly=true", "var", variable).code:
            raise SubdeckError(
                "git has no user name and email",
                where=repository.root,
                hint="git config --global user.name NAME, and user.email ADDRESS",
            )


def remarks(repository: Repository) -> tuple[str, ...]:
    """Return notes on git's own steps for a commit that are skipped here."""
    entries = repository.git.configured()
    notes: list[str] = []
    hooks = value_of([entry for entry in entries if entry.scope != "command"], "core.hookspath")
    directory = os.path.join(repository.root, os.path.expanduser(hooks)) if hooks else ""
    names = set(files.names(directory or os.path.join(repository.common_dir, "hooks")))
    if skipped_hooks := [name for name in _HOOKS if name in names]:
        notes.append(f"its hooks are not run ({', '.join(skipped_hooks)})")
    signs = value_of([entry for entry in entries if entry.scope != "command"], "commit.gpgsign")
    if signs.lower() in ("true", "1", "yes", "on"):
        notes.append("the commit is not signed; sign it with git commit --amend -S --no-edit")
    return tuple(notes)


def is_untouched(store: Store, target: Repository, before: str) -> bool:
    """Whether the files are certainly unchanged: unreadable ones may be half written."""
    try:
        return store.take(target).tree == before
    except (GitError, OSError):
        return False


def half_done(verb: str, error: GitError, root: str) -> SubdeckError:
    """Return an error for a git failure after which files may be partly written; the act stays on the stack."""
    return SubdeckError(
        f"the changes were not fully {verb}: {one_line(error.what, 400)}",
        where=root,
        hint="; ".join(filter(None, (error.hint, "subdeck undo restores the written files"))),
    )


# --- undo ------------------------------------------------------------------------------------------------------------


def reverse_files(project: paths.Project, store: Store, target: Repository, act: Act, before: str, after: str) -> str:
    """Revert written files from one tree to another; later changes stay.

    This also finishes an undo that failed or was killed. Raises SubdeckError if both changed the same lines, or if git
    fails, and OSError.
    """
    git = store.git(target)
    if act.undo is not None:
        wanted = act.undo.wanted
        now, base = _as_far(store, target, git, act.undo.now, wanted, base=act.undo.now)
    elif act.begun:
        if not _knows(git, before, after):
            return f"{act.title} had not written anything yet"
        wanted = before
        now, base = _as_far(store, target, git, before, after, base=after)
    else:
        now, base, wanted = store.take(target).tree, after, before
    merge = merged(git, base, now, wanted)
    if merge.conflicts:
        raise SubdeckError(
            f"cannot undo {act.title}: you changed the same lines since: {_listed(merge.conflicts)}",
            where=target.root,
            hint="revert or move these changes first; nothing was written",
        )
    if merge.tree == now:
        return f"undid {act.title}" if act.undo else f"{act.title} left no changes"
    note_undo(project, act, Undo(now, merge.tree))
    try:
        store.write(target, now, merge.tree)
    except InTheWay:
        note_undo(project, act, act.undo)
        raise
    except GitError as error:
        what = f"{act.title} was not fully undone: {one_line(error.what, 400)}"
        raise SubdeckError(what, where=target.root, hint=then_undo(error)) from error
    return f"undid {act.title}"


def then_undo(error: GitError) -> str:
    return "; ".join(filter(None, (error.hint, "run subdeck undo to finish it")))


def _listed(conflicts: tuple[Conflict, ...]) -> str:
    more = f" and {len(conflicts) - NAMED} more" if len(conflicts) > NAMED else ""
    return ", ".join(one_line(conflict.path, 200) for conflict in conflicts[:NAMED]) + more


def _knows(git: Git, *trees: str) -> bool:
    return all(not git.ask("cat-file", "-e", f"{tree}^{{tree}}").code for tree in trees)


def _as_far(store: Store, target: Repository, git: Git, old: str, new: str, *, base: str) -> tuple[str, str]:
    """Return the current tree during a switch between two trees, and `base` adjusted to it.

    Half-written files are removed. `base` loses the missing files: git removed them to write others, and a merge would
    treat that as deletions by the user.
    """
    now = store.take(target).tree
    if torn := _torn(git, target.root, now, old, new):
        for path in torn:
            files.remove(os.fsdecode(os.path.join(os.fsencode(target.root), path)))
        now = store.take(target).tree
    blobs = _blobs(git, now)
    missing = _changed(git, old, new).keys() - blobs.keys()
    if not missing:
        return now, base
    with store.scratch(target) as scratch:
        scratch.run("read-tree", base)
        none = b"0" * len(now)
        gone = b"".join(b"0 %b\t%b\0" % (none, path) for path in missing)
        scratch.run("update-index", "-z", "--index-info", input=gone)
        return now, os.fsdecode(scratch.run("write-tree", "--missing-ok")).strip()


def _torn(git: Git, root: str, now: str, before: str, after: str) -> list[bytes]:
    """Return files that a kill left half written: a prefix of the intended content."""
    blobs = _blobs(git, now)
    torn: list[bytes] = []
    for path, (old, new) in _changed(git, before, after).items():
        here = blobs.get(path)
        if here is None or new is None or here in (old, new) or not here.startswith(_REGULAR):
            continue
        intended = git.run("cat-file", "--filters", f"{after}:{os.fsdecode(path)}")
        content = files.read(os.fsdecode(os.path.join(os.fsencode(root), path)))
        if len(content) < len(intended) and intended.startswith(content):
            torn.append(path)
    return torn


def _changed(git: Git, before: str, after: str) -> dict[bytes, tuple[bytes | None, bytes | None]]:
    """Return the files that differ between two trees, each with its mode and id in both; None if it is missing."""
    fields = iter(git.run("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", before, after, "--").split(b"\0"))
    changed: dict[bytes, tuple[bytes | None, bytes | None]] = {}
    for head in fields:
        if head:
            old_mode, new_mode, old_id, new_id, _ = head[1:].split(b" ")
            old = None if old_mode == b"000000" else old_mode + old_id
            changed[next(fields)] = old, None if new_mode == b"000000" else new_mode + new_id
    return changed


def _blobs(git: Git, tree: str) -> dict[bytes, bytes]:
    """Return mode and id of each file of a tree."""
    blobs: dict[bytes, bytes] = {}
    for line in git.lines("ls-tree", "-r", "-z", "--full-tree", tree):
        head, _, path = line.partition(b"\t")
        mode, _, object_id = head.split(b" ", 2)
        blobs[path] = mode + object_id
    return blobs
