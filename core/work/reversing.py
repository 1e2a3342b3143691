"""Taking files back to what they were before something was applied, with what was changed in them since."""

from __future__ import annotations

import os

from .. import paths
from ..errors import SubdeckError
from ..git.merging import Conflict, merged
from ..git.program import Git, GitError
from ..git.repository import Repository
from ..git.snapshot import Store
from ..git.writing import check_room
from ..system import files
from ..text.decoding import fit
from ..text.plain import one_line
from .acts import Act, ActKind, place
from .merging import Merged
from .readiness import check_free
from .source import usable
from .taking import Applied

NAMED = 5


def take_back_applied(project: paths.Project, act: Act) -> str:
    """Take out of the files what was applied; return what became of it. Raises SubdeckError and OSError."""
    applied = fit(act.data, Applied)
    target = usable(applied.root)
    store = Store(place(project, act.id))
    said = reverse(store, target, act, applied.now, applied.wanted)
    if applied.before is not None:
        applied.before.restore()
    return said


def reverse(store: Store, target: Repository, act: Act, before: str, after: str) -> str:
    """Bring files that went from one tree to another back, as far as they were written; what was changed since stays.

    Raises SubdeckError where both cannot be.
    """
    git = store.git(target)
    if act.begun and not _knows(git, before, after):
        return f"{act.title} had not begun to write"
    now = store.take(target).tree
    if act.begun and (torn := _torn(git, target.root, now, before, after)):
        for path in torn:
            files.remove(os.fsdecode(os.path.join(os.fsencode(target.root), path)))
        now = store.take(target).tree
    base = _as_far(store, target, git, now, before, after) if act.begun else after
    merge = merged(git, base, now, before)
    if merge.conflicts:
        raise SubdeckError(
            f"{act.title} cannot be taken back: changed since, on the same lines: {_listed(merge.conflicts)}",
            where=target.root,
            hint="put that back or aside first; nothing was written",
        )
    if merge.tree == now:
        return f"nothing of {act.title} was left"
    store.write(target, now, merge.tree)
    return f"took back {act.title}"


def _listed(conflicts: tuple[Conflict, ...]) -> str:
    more = f" and {len(conflicts) - NAMED} more" if len(conflicts) > NAMED else ""
    return ", ".join(one_line(one.path, 200) for one in conflicts[:NAMED]) + more


def _knows(git: Git, *trees: str) -> bool:
    return all(not git.ask("cat-file", "-e", f"{tree}^{{tree}}").code for tree in trees)


def _torn(git: Git, root: str, now: str, before: str, after: str) -> list[bytes]:
    """Return the files that a kill left half written: the beginning of what was to be written."""
    places = _blobs(git, now)
    torn: list[bytes] = []
    for path, (old, new) in _changed(git, before, after).items():
        here = places.get(path)
        if here is None or new is None or here in (old, new):
            continue
        wanted = git.run("cat-file", "--filters", f"{after}:{os.fsdecode(path)}")
        held = files.content(os.fsdecode(os.path.join(os.fsencode(root), path)))
        if len(held) < len(wanted) and wanted.startswith(held):
            torn.append(path)
    return torn


def _as_far(store: Store, target: Repository, git: Git, now: str, before: str, after: str) -> str:
    """Return the tree that was to be written, without the files that were removed to be written and are not there."""
    places = _blobs(git, now)
    missing = [path for path, (_, new) in _changed(git, before, after).items() if new and path not in places]
    if not missing:
        return after
    with store.scratch(target) as scratch:
        scratch.run("read-tree", after)
        none = b"0" * len(now)
        gone = b"".join(b"0 %b\t%b\0" % (none, path) for path in missing)
        scratch.run("update-index", "-z", "--index-info", input=gone)
        return os.fsdecode(scratch.run("write-tree", "--missing-ok")).strip()


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
    if act.begun and target.head == done.head:
        # git was killed before it moved the branch: some files may be written, and the index is as it was.
        said = reverse(Store(place(project, act.id)), target, act, f"{done.head}^{{tree}}", f"{done.commit}^{{tree}}")
    elif target.branch != done.branch:
        hint = f"git switch {branch} first"
        raise SubdeckError(f"{act.title} cannot be taken back: {branch} is not checked out", where=done.root, hint=hint)
    elif target.head != done.commit:
        again = f"git revert {'-m 1 ' if act.kind is ActKind.MERGE else ''}{done.commit[:12]}"
        raise SubdeckError(
            f"{act.title} cannot be taken back: {branch} has moved on",
            where=done.root,
            hint=f"{again} in a shell takes it out by another commit",
        )
    else:
        check_free(target)
        try:
            check_room(target.git, target.root, done.commit, done.head)
            # Files and index first: killed after that, the same is done again and changes nothing.
            target.git.run("read-tree", "-m", "-u", "--no-recurse-submodules", done.commit, done.head)
            target.git.run("update-ref", "-m", "subdeck: undo", f"refs/heads/{done.branch}", done.head, done.commit)
        except GitError as error:
            what = f"{act.title} cannot be taken back: {one_line(error.what, 300)}"
            raise SubdeckError(what, where=done.root, hint="commit or stash what is in the way") from error
        said = f"took back {act.title}: {branch} is at {done.head[:12]} again"
    if done.before is not None:
        done.before.restore()
    return said
