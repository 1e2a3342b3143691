"""Taking files back to what they were before something was applied, with what was changed in them since."""

from __future__ import annotations

import os

from .. import paths
from ..errors import SubdeckError
from ..git.checkout import InTheWay
from ..git.merges import Conflict, merged
from ..git.program import Git, GitError
from ..git.repository import Repository
from ..git.snapshot import Store
from ..system import files
from ..text.decoding import fit
from ..text.plain import one_line
from ._readiness import check_free
from .acts import Act, ActKind, Undo, note_undo, place
from .merging import Merged
from .source import usable
from .taking import Applied

NAMED = 5
_REGULAR = b"100"
"""The mode of a file begins with it, and that of a link does not: git makes links whole."""


def take_back_applied(project: paths.Project, act: Act) -> str:
    """Take out of the files what was applied; return what became of it. Raises SubdeckError and OSError."""
    applied = fit(act.data, Applied)
    target = usable(applied.root)
    store = Store(place(project, act.id))
    said = reverse(project, store, target, act, applied.now, applied.wanted)
    if applied.before is not None:
        applied.before.restore()
    return said


def reverse(project: paths.Project, store: Store, target: Repository, act: Act, before: str, after: str) -> str:
    """Bring files that went from one tree to another back, as far as they were written; what was changed since stays.

    An undo that has failed or was killed on its way is finished. Raises SubdeckError where both changed the same lines,
    or where git fails, and OSError.
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
        raise SubdeckError(what, where=target.root, hint=_then_undo(error)) from error
    return f"undid {act.title}"


def _then_undo(error: GitError) -> str:
    return "; ".join(filter(None, (error.hint, "run subdeck undo to finish it")))


def _listed(conflicts: tuple[Conflict, ...]) -> str:
    more = f" and {len(conflicts) - NAMED} more" if len(conflicts) > NAMED else ""
    return ", ".join(one_line(one.path, 200) for one in conflicts[:NAMED]) + more


def _knows(git: Git, *trees: str) -> bool:
    return all(not git.ask("cat-file", "-e", f"{tree}^{{tree}}").code for tree in trees)


def _as_far(store: Store, target: Repository, git: Git, old: str, new: str, *, base: str) -> tuple[str, str]:
    """Return what the files are, which were being brought from one tree to another, and `base` as it fits that.

    What was left half written is removed. `base` loses the files that are not there: git removed them to write others,
    and a merge would take that for deletions of the operator's.
    """
    now = store.take(target).tree
    if torn := _torn(git, target.root, now, old, new):
        for path in torn:
            files.remove(os.fsdecode(os.path.join(os.fsencode(target.root), path)))
        now = store.take(target).tree
    places = _blobs(git, now)
    missing = _changed(git, old, new).keys() - places.keys()
    if not missing:
        return now, base
    with store.scratch(target) as scratch:
        scratch.run("read-tree", base)
        none = b"0" * len(now)
        gone = b"".join(b"0 %b\t%b\0" % (none, path) for path in missing)
        scratch.run("update-index", "-z", "--index-info", input=gone)
        return now, os.fsdecode(scratch.run("write-tree", "--missing-ok")).strip()


def _torn(git: Git, root: str, now: str, before: str, after: str) -> list[bytes]:
    """Return the files that a kill left half written: the beginning of what was to be written."""
    places = _blobs(git, now)
    torn: list[bytes] = []
    for path, (old, new) in _changed(git, before, after).items():
        here = places.get(path)
        if here is None or new is None or here in (old, new) or not here.startswith(_REGULAR):
            continue
        wanted = git.run("cat-file", "--filters", f"{after}:{os.fsdecode(path)}")
        held = files.read(os.fsdecode(os.path.join(os.fsencode(root), path)))
        if len(held) < len(wanted) and wanted.startswith(held):
            torn.append(path)
    return torn


def _changed(git: Git, before: str, after: str) -> dict[bytes, tuple[bytes | None, bytes | None]]:
    """Return the files that two trees differ in, each with its mode and id in both; None where it is missing."""
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
    found: dict[bytes, bytes] = {}
    for line in git.lines("ls-tree", "-r", "-z", "--full-tree", tree):
        head, _, path = line.partition(b"\t")
        mode, _, object_id = head.split(b" ", 2)
        found[path] = mode + object_id
    return found


def take_back_merged(project: paths.Project, act: Act) -> str:
    """Bring a branch back to the commit before a merge, with files and index; what is not committed stays.

    Raises SubdeckError where it has moved on, or where files are in the way, and OSError.
    """
    done = fit(act.data, Merged)
    target = usable(done.root)
    branch = one_line(done.branch, 80)
    # git moves the branch last, and so does an undo: killed before that, files and index may still have to follow.
    is_back = target.head == done.head and (act.begun or act.undo is not None)
    if not is_back:
        _check_branch(target, act, done)
    check_free(target)
    store = Store(place(project, act.id))
    _check_uncommitted(store, target, act, done)
    said = reverse(project, store, target, act, f"{done.head}^{{tree}}", f"{done.commit}^{{tree}}")
    try:
        target.git.run("read-tree", "-i", "-m", "--no-recurse-submodules", done.commit, done.head)
        target.git.ask("update-index", "-q", "--refresh")
        if not is_back:
            target.git.run("update-ref", "-m", "subdeck: undo", f"refs/heads/{done.branch}", done.head, done.commit)
            said = f"undid {act.title}: {branch} is at {done.head[:12]} again"
    except GitError as error:
        what = f"{act.title} was not fully undone: {one_line(error.what, 300)}"
        raise SubdeckError(what, where=done.root, hint=_then_undo(error)) from error
    if done.before is not None:
        done.before.restore()
    return said


def _check_branch(target: Repository, act: Act, done: Merged) -> None:
    branch = one_line(done.branch, 80)
    if target.branch != done.branch:
        hint = f"git switch {branch} first"
        raise SubdeckError(f"cannot undo {act.title}: {branch} is not checked out", where=done.root, hint=hint)
    if target.head != done.commit:
        again = f"git revert {'-m 1 ' if act.kind is ActKind.MERGE else ''}{done.commit[:12]}"
        raise SubdeckError(
            f"cannot undo {act.title}: {branch} has new commits",
            where=done.root,
            hint=f"run {again} in a shell to undo it with a new commit",
        )


def _check_uncommitted(store: Store, target: Repository, act: Act, done: Merged) -> None:
    """Raise SubdeckError where files of the merge have changes that are not committed: in the index always, in the
    working tree unless subdeck itself was writing there.
    """
    names = ("--name-only", "--no-renames", "-z")
    merged_files = set(target.git.lines("diff-tree", "-r", *names, done.commit, done.head, "--"))
    staged = set(target.git.lines("diff-index", "--cached", *names, done.commit, "--"))
    staged &= set(target.git.lines("diff-index", "--cached", *names, done.head, "--"))
    changed = staged & merged_files
    if not act.begun and act.undo is None:
        now = store.take(target).tree
        changed |= merged_files & set(store.git(target).lines("diff-tree", "-r", *names, done.commit, now, "--"))
    if changed:
        listed = ", ".join(one_line(os.fsdecode(path), 200) for path in sorted(changed)[:NAMED])
        more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
        what = f"cannot undo {act.title}: you have uncommitted changes in {listed}{more}"
        raise SubdeckError(what, where=done.root, hint="commit or stash them first")
