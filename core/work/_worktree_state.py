"""The state of a run's worktree: whether its changes are also elsewhere, and any problem.

A check changes only subdeck's own files beside the worktree. It compares the record with git's view. If anything is
uncertain, the worktree counts as one whose work is nowhere else.
"""

from __future__ import annotations

import os

from msgspec import Struct

from ..git.program import Git, GitError
from ..git.repository import Repository, find
from ..git.worktrees import branch
from ..run.enumerations import OpenEnum
from ..system import files
from ..text.plain import one_line
from ..text.shell import shell_word
from .records import WorkRecord, read_recorded, tree_of

SHOWN = 80
"""Characters of a name in a sentence."""
LOOKED = "looked"
"""Directory of the store that compares uncommitted files."""
_DOT_GIT = "gitdir: "
HALF_MADE = "its creation was interrupted"
_BEING_MADE = b"initializing"
"""git's lock reason for a worktree that it is creating: until all files exist, and forever if it is killed."""


class WorkState(OpenEnum):
    UNCHANGED = "unchanged"
    """Nothing was changed, so nothing can be lost."""
    TAKEN = "taken"
    """The work is in the working tree or another branch, or was discarded."""
    UNMERGED = "unmerged"
    UNKNOWN = "unknown"
    """It cannot be determined, at least in part."""
    GONE = "gone"
    """Neither worktree nor branch exists."""


class WorktreeState(Struct, frozen=True):
    work: WorkState
    words: str
    """Its meaning here: `merged into main`, `3 files changed, 41 insertions(+)`."""
    trouble: str = ""
    """The problem, a sentence; empty without one."""
    advice: str = ""
    """What to do about it."""
    tip: str = ""
    """The commit of the branch; empty without one."""
    admin: str = ""
    """The worktree's administrative directory in the repository; empty without one."""

    @property
    def is_safe(self) -> bool:
        """Whether worktree and branch can be removed without loss."""
        return self.work in (WorkState.UNCHANGED, WorkState.TAKEN, WorkState.GONE)


def look(directory: str, record: WorkRecord) -> WorktreeState:
    """Check a run's work in a directory. A problem there never raises."""
    try:
        return _look(directory, record)
    except (GitError, OSError) as error:
        why = error.what if isinstance(error, GitError) else error.strerror or str(error)
        return _unknown(f"git cannot read it: {one_line(why, 200)}", f"check {one_line(tree_of(directory))}")


def _unknown(trouble: str, advice: str, **fields: str) -> WorktreeState:
    return WorktreeState(WorkState.UNKNOWN, "unknown", trouble, advice, **fields)


def _look(directory: str, record: WorkRecord) -> WorktreeState:
    tree, name = tree_of(directory), one_line(record.branch, SHOWN)
    has_tree = os.path.lexists(tree) and (not os.path.isdir(tree) or bool(files.names(tree)))
    if not os.path.isdir(record.common_dir):
        if not has_tree:
            return WorktreeState(WorkState.GONE, "its repository and its worktree no longer exist")
        location = one_line(record.common_dir)
        return _unknown(
            f"its repository is no longer at {location}: it was moved or removed",
            f"run this in the moved repository: git worktree repair {one_line(shell_word(tree))}",
        )
    repository = repository_of(record)
    git, at = repository.git, branch(repository, record.branch)
    tip, elsewhere = (at.commit, at.worktree) if at else ("", "")
    admin = admin_of(record.common_dir, tree)
    if not has_tree:
        return _without_tree(git, record, tip, elsewhere, admin)
    if not admin:
        return _unknown(
            "git has forgotten it (git worktree prune)",
            f"repair it with subdeck worktrees --repair {record.run_id[-6:]}; the files are in {one_line(tree)}",
            tip=tip,
        )
    if tip == record.base and files.content(os.path.join(admin, "locked")).strip() == _BEING_MADE:
        return WorktreeState(WorkState.UNCHANGED, HALF_MADE, tip=tip, admin=admin)
    if not leads_to(tree, admin):
        return _unknown(
            "its .git was changed and points to another place",
            f"check {one_line(tree)}/.git; it should contain {_DOT_GIT}{one_line(admin)}",
            tip=tip,
            admin=admin,
        )
    head, checked_out, is_dirty = _status(tree)
    trouble, advice = _oddity(record, tree, tip, elsewhere, checked_out, admin)
    work, words = _compared(git, directory, record, head, tip, is_dirty=is_dirty)
    if checked_out != record.branch and tip and not _is_within(git, tip, head, record):
        work, words = WorkState.UNMERGED, f"{name} has its own commits"
    return WorktreeState(work, words, trouble, advice, tip, admin)


def repository_of(record: WorkRecord) -> Repository:
    """Return a worktree's repository, usable for worktrees and branches only."""
    return Repository("", git_dir=record.common_dir, common_dir=record.common_dir)


def admin_of(common_dir: str, tree: str) -> str:
    """Return a worktree's administrative directory in the repository; empty if git has forgotten it."""
    above = os.path.join(common_dir, "worktrees")
    dot_git = os.path.join(os.path.realpath(os.path.dirname(tree)), os.path.basename(tree), ".git")
    for name in files.names(above):
        pointer = os.fsdecode(files.content(os.path.join(above, name, "gitdir"))).rstrip("\n")
        if pointer and os.path.join(os.path.realpath(os.path.dirname(pointer)), ".git") == dot_git:
            return os.path.join(above, name)
    return ""


def leads_to(tree: str, admin: str) -> bool:
    """Whether a worktree's `.git` is still the file that git wrote: the agent can write there."""
    pointer = os.fsdecode(files.content(os.path.join(tree, ".git"))).rstrip("\n")
    return pointer.startswith(_DOT_GIT) and os.path.realpath(pointer.removeprefix(_DOT_GIT)) == os.path.realpath(admin)


def _without_tree(git: Git, record: WorkRecord, tip: str, elsewhere: str, admin: str) -> WorktreeState:
    """Return its state if the worktree does not exist."""
    if not tip:
        return WorktreeState(WorkState.GONE, "the worktree and the branch do not exist", admin=admin)
    trouble, advice = "", ""
    if elsewhere and os.path.isdir(elsewhere):
        trouble, advice = _checked_out(record, elsewhere)
    work, words = _committed(git, record, tip)
    return WorktreeState(work, words, trouble, advice, tip, admin)


def _checked_out(record: WorkRecord, directory: str) -> tuple[str, str]:
    return (
        f"its branch {one_line(record.branch, SHOWN)} is checked out in {one_line(directory)}",
        "it stays while the branch is checked out there",
    )


def _status(tree: str) -> tuple[str, str, bool]:
    """Return the commit and branch checked out in a worktree, and whether anything is uncommitted."""
    head = checked_out = ""
    arguments = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--no-renames")
    is_dirty = False
    for line in Git(tree).lines(*arguments):
        if line.startswith(b"# branch.oid "):
            head = os.fsdecode(line[13:])
        elif line.startswith(b"# branch.head "):
            checked_out = os.fsdecode(line[14:])
        elif not line.startswith(b"#"):
            is_dirty = True
    return "" if head == "(initial)" else head, checked_out, is_dirty


def _oddity(record: WorkRecord, tree: str, tip: str, elsewhere: str, checked_out: str, admin: str) -> tuple[str, str]:
    name = one_line(record.branch, SHOWN)
    lock = os.path.join(admin, "index.lock")
    if os.path.lexists(lock):
        trouble = "its index is locked: a git command is running there, or was killed"
        return trouble, f"if no git command is running, remove {one_line(lock)}"
    if os.path.lexists(os.path.join(admin, "locked")):
        return "it is locked", f"git worktree unlock {one_line(shell_word(tree))}"
    if not tip and checked_out not in ("", "(detached)"):
        return f"its branch {name} was renamed, or deleted; {one_line(checked_out, SHOWN)} is checked out there", ""
    if not tip:
        return f"its branch {name} was deleted", f"create a new one with git branch NAME in {one_line(tree)}"
    if elsewhere and os.path.realpath(elsewhere) != os.path.realpath(tree):
        return _checked_out(record, elsewhere)
    if checked_out != record.branch:
        now = "no branch" if checked_out == "(detached)" else one_line(checked_out, SHOWN)
        return f"{now} is checked out there, not {name}", ""
    return "", ""


def _compared(
    git: Git, directory: str, record: WorkRecord, head: str, tip: str, *, is_dirty: bool
) -> tuple[WorkState, str]:
    """Determine whether a worktree's content is also elsewhere."""
    if not is_dirty and not _left_more(git, directory, head):
        return _committed(git, record, head or tip)
    from .source import store_beside

    repository = find(tree_of(directory))
    if repository is None:
        raise OSError("it is no longer a worktree")
    store = store_beside(directory, LOOKED)
    taken = store.take(repository)
    if taken.skipped or taken.note:
        return WorkState.UNMERGED, "some files are too large or cannot be read"
    git = store.git(repository)
    if tip == record.base and not os.path.exists(os.path.join(repository.git_dir, "index")):
        shown = git.run("diff-tree", "-r", "--name-status", "--no-renames", record.base, taken.tree)
        if all(line.startswith(b"D") for line in shown.splitlines()):
            return WorkState.UNCHANGED, HALF_MADE
    return _of_tree(git, record, taken.tree)


def _left_more(git: Git, directory: str, head: str) -> bool:
    """Whether the run left more than the commit: its agent may have hidden files from git."""
    recorded = read_recorded(directory)
    if recorded is None or not recorded.after or not head:
        return False
    answer = git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{head}^{{tree}}")
    return os.fsdecode(answer.output).strip() != recorded.after


def _committed(git: Git, record: WorkRecord, commit: str) -> tuple[WorkState, str]:
    """Determine whether a commit, or its changes, are in another branch."""
    if not commit or commit == record.base:
        return WorkState.UNCHANGED, "nothing was changed"
    other_reference = _other_reference_with(git, record, commit)
    if other_reference:
        return WorkState.TAKEN, f"merged into {one_line(other_reference, SHOWN)}"
    return _of_tree(git, record, *git.trees(commit))


def _other_reference_with(git: Git, record: WorkRecord, commit: str) -> str:
    """Return another branch or tag, not the run's own, that contains a commit; empty for none.

    Branches of other runs do not count: they may also be deleted.
    """
    form = "%(refname)"
    refs = git.run(
        "for-each-ref", f"--format={form}", f"--contains={commit}", "refs/heads", "refs/remotes", "refs/tags"
    )
    for line in refs.splitlines():
        name = os.fsdecode(line)
        if not name.startswith("refs/heads/subdeck/") and name != f"refs/heads/{record.branch}":
            return name.split("/", 2)[-1]
    return ""


def _of_tree(git: Git, record: WorkRecord, tree: str) -> tuple[WorkState, str]:
    """Determine whether a tree's content was applied, or is in the checked-out commit."""
    if record.taken is not None and record.taken_tree == tree:
        return WorkState.TAKEN, str(record.taken)
    changed = _names(git, record.base, tree)
    if not changed:
        return WorkState.UNCHANGED, "nothing was changed"
    head = _head(record)
    if head and not changed & _names(git, head, tree):
        return WorkState.TAKEN, "all of it is in HEAD"
    return WorkState.UNMERGED, _counted(git, record, tree)


def _head(record: WorkRecord) -> str:
    """Return the commit checked out where the worktree was made from; empty if unknown."""
    try:
        return os.fsdecode(Git(record.root, is_own=True).run("rev-parse", "--verify", "--quiet", "HEAD").strip())
    except (GitError, OSError):
        return ""


def _names(git: Git, before: str, after: str) -> set[bytes]:
    """Return the paths with different content in two trees."""
    return set(git.lines("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after))


def _counted(git: Git, record: WorkRecord, tree: str) -> str:
    """Summarize the changes: `3 files changed, 41 insertions(+), 12 deletions(-)`."""
    arguments = ("diff-tree", "--shortstat", "--no-ext-diff", "--no-textconv", record.base, tree)
    return one_line(git.run(*arguments).decode("utf-8", "replace").strip(), SHOWN) or "files were changed"


def _is_within(git: Git, tip: str, head: str, record: WorkRecord) -> bool:
    """Whether the branch's commit is in the worktree's checked-out commit, or in another branch."""
    if tip in (record.base, head):
        return True
    if _other_reference_with(git, record, tip):
        return True
    count = git.run("rev-list", "--count", "--max-count=1", tip, f"^{head}") if head else b"1"
    return count.strip() == b"0"
