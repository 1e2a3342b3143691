"""Whether a commit can be made in a repository, in the name of its user; and what git would have done besides."""

from __future__ import annotations

import os

from ..errors import SubdeckError
from ..git.configuration import value_of
from ..git.program import AT_WORK
from ..git.repository import Repository
from ..system import files
from ..text.plain import one_line

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
    """Raise SubdeckError where the branch that is checked out cannot get a commit now."""
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
    """Raise SubdeckError where another command of git is at work, or is to be gone on with."""
    where = repository.root
    for name, words in _UNDER_WAY.items():
        if os.path.lexists(os.path.join(repository.git_dir, name)):
            raise SubdeckError(f"{words} is in progress", where=where, hint="finish or abort it first (git status)")
    _check_unlocked(repository, "index", os.path.join(repository.git_dir, "index.lock"))


def check_identity(repository: Repository) -> None:
    """Raise SubdeckError where git does not know in whose name to commit."""
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if repository.git.ask("-c", "user.useConfigOnly=true", "var", variable).code:
            raise SubdeckError(
                "git has no user name and email",
                where=repository.root,
                hint="git config --global user.name NAME, and user.email ADDRESS",
            )


def remarks(repository: Repository) -> tuple[str, ...]:
    """Say what git itself would do with a commit, and what is not done here."""
    entries = repository.git.configured()
    said: list[str] = []
    hooks = value_of([one for one in entries if one.scope != "command"], "core.hookspath")
    directory = os.path.join(repository.root, os.path.expanduser(hooks)) if hooks else ""
    names = set(files.names(directory or os.path.join(repository.common_dir, "hooks")))
    if found := [name for name in _HOOKS if name in names]:
        said.append(f"its hooks are not run ({', '.join(found)})")
    signs = value_of([one for one in entries if one.scope != "command"], "commit.gpgsign")
    if signs.lower() in ("true", "1", "yes", "on"):
        said.append("the commit is not signed; sign it with git commit --amend -S --no-edit")
    return tuple(said)
