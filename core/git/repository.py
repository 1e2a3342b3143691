"""git's view of a directory: its repository, the checked-out commit, and any trouble."""

from __future__ import annotations

import os
import stat
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ..system import files
from ..system.git_pointers import directories_of, read_pointer
from ..text.plain import one_line
from .program import Git, GitError, GitResult, failure

PATIENCE_S = 10.0
_DOT_GIT = ".git"
_BRANCHES = "refs/heads/"
_NO_REF = "ref: refs/heads/.invalid"
"""Content of HEAD if references are in tables."""
_READ_FIRST = (
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "packed-refs",
    "shallow",
    "objects/info/alternates",
)
"""Files that git reads for any command: it would block on a pipe in their place."""
_MOVED = "git finds its working tree elsewhere: check core.worktree and .git"
_NONE_HERE = "not a git repository (or any "


class Repository(Struct, frozen=True, dict=True):
    """A repository with its working tree; if there is `trouble`, the other fields may be wrong."""

    root: str
    """Root of the working tree, without links; empty if bare."""
    prefix: str = ""
    """The requested directory relative to it, such as `services/api`; empty for the root."""
    git_dir: str = ""
    common_dir: str = ""
    """Shared by all its working trees."""
    head: str | None = None
    """The checked-out commit; None before the first."""
    tree: str = ""
    """The tree of that commit; empty without one."""
    branch: str | None = None
    """Short name, such as `main`; None if HEAD is detached."""
    object_format: str = "sha1"
    is_bare: bool = False
    trouble: str = ""
    """Why it is unusable, a sentence; empty if it is usable."""

    @cached_property
    def git(self) -> Git:
        """git in its root. The programs set by the repository at first use are overridden."""
        return Git(self.root or self.git_dir)

    @property
    def objects(self) -> str:
        return os.path.join(self.common_dir, "objects")

    @property
    def is_linked(self) -> bool:
        """Whether its working tree was added to another one."""
        return self.git_dir != self.common_dir


def find(directory: str, *, patience: float = PATIENCE_S) -> Repository | None:
    """Find the repository of a directory; None without one. Never raises: a problem is its `trouble`."""
    here = os.path.realpath(directory)
    likely_root = _likely_root_of(here)
    if likely_root is None:
        return None
    if waits := _waits(likely_root):
        return Repository(likely_root, trouble=f"git would block on {one_line(waits)}: it is not a regular file")
    try:
        answer = Git(here, is_own=True, patience=patience).ask(
            *("rev-parse", "--is-bare-repository", "--show-object-format=storage", "--path-format=absolute"),
            *("--git-dir", "--git-common-dir", "--show-toplevel", "HEAD", "HEAD^{commit}", "HEAD^{tree}"),
        )
    except GitError as error:
        return Repository(likely_root, trouble=error.what)
    is_bare, _, rest = os.fsdecode(answer.output).partition("\n")
    object_format, _, rest = rest.partition("\n")
    if not rest:
        if _NONE_HERE in answer.stderr and not os.path.lexists(os.path.join(likely_root, _DOT_GIT)):
            return None
        return Repository(likely_root, trouble=_trouble(answer, here))
    if is_bare == "true":
        dot_git = os.path.join(likely_root, _DOT_GIT)
        git_dir = dot_git if os.path.isdir(dot_git) else likely_root
        return Repository("", git_dir=git_dir, common_dir=git_dir, is_bare=True, trouble="the repository is bare")
    parts = _parts(rest, likely_root)
    if parts is None:
        return Repository(likely_root, trouble=_trouble(answer, here) if answer.code else _MOVED)
    git_dir, common_dir, root, head = parts
    prefix = os.path.relpath(here, root)
    repository = Repository(
        root,
        prefix="" if prefix == os.curdir else prefix,
        git_dir=git_dir,
        common_dir=common_dir,
        head=head[0] if head else None,
        tree=head[2] if len(head) == 3 else "",
        object_format=object_format,
    )
    return _checked(repository, head)


def _parts(text: str, root: str) -> tuple[str, str, str, list[str]] | None:
    """Split lines of paths: the repository, the shared directory, the working tree; the rest is HEAD.

    Paths may have line breaks, but the working tree's is known. None if it is elsewhere.
    """
    joined, is_there, rest = text.rpartition(f"\n{root}\n")
    if not is_there:
        return None
    head = rest.split("\n")[:-1]
    ends = [number for number, character in enumerate(joined) if character == "\n"]
    for end in ends:
        git_dir, common_dir = joined[:end], joined[end + 1 :]
        if len(ends) == 1 or git_dir == common_dir or git_dir.startswith(f"{common_dir}/worktrees/"):
            return (
                git_dir,
                common_dir,
                root,
                [word for word in head if "HEAD" not in word],
            )  # repeated if it is nothing
    return None


def _trouble(answer: GitResult, where: str) -> str:
    return failure(("rev-parse",), answer, where).what.removeprefix("git rev-parse: ")


def _likely_root_of(directory: str) -> str | None:
    """Return the nearest directory that looks like a repository, without git; None without one."""
    while True:
        dot_git = os.path.join(directory, _DOT_GIT)
        has_dot_git = any(_parts_in(dot_git)) if os.path.isdir(dot_git) else os.path.lexists(dot_git)
        if has_dot_git or all(_parts_in(directory)):
            return directory
        directory, former = os.path.dirname(directory), directory
        if directory == former:
            return None


def _waits(root: str) -> str:
    """Return a named pipe in the place of a file that git always reads; empty without one."""
    dot_git = os.path.join(root, _DOT_GIT)
    git_dir, common_dir = directories_of(root, dot_git if os.path.lexists(dot_git) else root)
    for directory in dict.fromkeys((git_dir, common_dir)):
        reference = read_pointer(os.path.join(git_dir, "HEAD")).removeprefix("ref:").strip()
        for name in (*_READ_FIRST, reference or "HEAD"):
            path = os.path.join(directory, name)
            if _is_pipe(path):
                return os.path.normpath(path)
    return ""


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _parts_in(directory: str) -> list[bool]:
    return [os.path.lexists(os.path.join(directory, name)) for name in ("HEAD", "objects", "refs")]


def _checked(repository: Repository, head: list[str]) -> Repository:
    """Add the branch and any trouble of a repository that git has found."""
    if repository.prefix.split(os.sep)[0] == os.pardir:
        return replace(repository, prefix="", trouble=_MOVED)
    if trouble := _elsewhere(repository):
        return replace(repository, trouble=trouble)
    try:
        content = os.fsdecode(_content(os.path.join(repository.git_dir, "HEAD"))).strip()
        if content == _NO_REF:
            asked = repository.git.ask("symbolic-ref", "--quiet", "HEAD")
            content = f"ref: {os.fsdecode(asked.output).strip()}" if not asked.code else ""
    except (GitError, OSError) as error:
        return replace(repository, trouble=f"cannot read its HEAD: {error}")
    reference = content.removeprefix("ref:").strip() if content.startswith("ref:") else ""
    repository = replace(
        repository, branch=reference.removeprefix(_BRANCHES) if reference.startswith(_BRANCHES) else None
    )
    if len(head) in (1, 2):
        return replace(repository, trouble=f"the checked-out commit is missing: {head[0]}")
    if not head and (not reference or os.path.lexists(os.path.join(repository.common_dir, reference))):
        return replace(
            repository, trouble=f"cannot read the checked-out commit: {one_line(reference or content, 100) or 'HEAD'}"
        )
    return repository


def _elsewhere(repository: Repository) -> str:
    """Describe a `.git` that leads to a repository without this working tree; empty if all is well.

    git follows any such pointer. One from an unpacked archive would make us write into another repository.
    """
    dot_git = os.path.join(repository.root, _DOT_GIT)
    try:
        status = os.lstat(dot_git)
    except OSError:
        return _MOVED
    if stat.S_ISDIR(status.st_mode):
        if os.path.realpath(dot_git) != os.path.realpath(repository.git_dir):
            return "git finds a different repository there than its .git"
        if repository.is_linked:
            return f"its .git shares another repository, {one_line(repository.common_dir)}"
    elif not _leads_back(repository, dot_git):
        hint = "if that is correct, set git config core.worktree to this directory"
        return f"its .git points to {one_line(repository.git_dir)}, which does not point back ({hint})"
    for name in ("objects", "refs", "worktrees", "logs", os.path.join("refs", "heads")):
        path = os.path.join(repository.common_dir, name)
        if os.path.islink(path) and not _is_within(os.path.realpath(path), os.path.realpath(repository.common_dir)):
            return f"the directory {name} of its repository is a link to another place"
    return ""


def _leads_back(repository: Repository, dot_git: str) -> bool:
    """Whether a `.git`'s repository has this working tree: an added one, or a submodule's."""
    if repository.is_linked:
        pointer = os.fsdecode(files.content(os.path.join(repository.git_dir, "gitdir"))).removesuffix("\n")
        return os.path.realpath(os.path.join(repository.git_dir, pointer)) == os.path.realpath(dot_git) and (
            os.path.realpath(os.path.dirname(repository.git_dir))
            == os.path.join(os.path.realpath(repository.common_dir), "worktrees")
        )
    if _is_within(os.path.realpath(repository.git_dir), os.path.realpath(repository.root)):
        return True
    try:
        answer = Git("/", is_own=True).ask(
            "config", "--file", os.path.join(repository.git_dir, "config"), "--get", "core.worktree"
        )
    except GitError:
        return False
    path = os.fsdecode(answer.output).removesuffix("\n")
    return bool(path) and os.path.realpath(os.path.join(repository.git_dir, path)) == os.path.realpath(repository.root)


def _is_within(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory.rstrip('/')}/")


def _content(path: str) -> bytes:
    """Read a small file; for a link return its target, as HEAD once was a link. Raises OSError."""
    if os.path.islink(path):
        return b"ref: " + os.fsencode(os.readlink(path))
    return files.read(path)
