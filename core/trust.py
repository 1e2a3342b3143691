"""Whose directories are used: this user's own, and those of others that he has said he trusts.

What lies below `.pi/subagents` says what is run and with which words, so that another user's is refused, as git refuses
another user's repository. The ways out are the user's own: his setting `trusted`, git's `safe.directory`, and sudo.
"""

from __future__ import annotations

import os

from . import paths
from .errors import SubdeckError, UsageError
from .system.directory import RefusedError, opened

_GIT_PATIENCE_S = 5.0


def find_project(cwd: str) -> paths.Project:
    """Find the project of a directory as `paths.find_project` does; what is trusted counts as this user's own."""
    return paths.find_project(cwd, is_trusted)


def is_trusted(owner: int, root: str) -> bool:
    """Return whether a project may be used of which something belongs to this user id.

    Raises SettingsError where another user's is met and the user's settings cannot be read.
    """
    return paths.is_own(owner, root) or _is_named(root) or _is_safe_for_git(root)


def check(project: paths.Project) -> None:
    """Raise UsageError where a project's own directories are another user's, or lead out of it."""
    if fault := fault_of(project):
        raise fault


def fault_of(project: paths.Project) -> SubdeckError | None:
    """Return why what a project keeps may not be used; None where it may, or where there is nothing yet."""
    try:
        _check_owner(project, ".pi", os.stat(f"{project.root}/.pi").st_uid)
        with opened(project.home) as home:
            _check_owner(project, project.home, home.status(".").st_uid)
            for path in (project.runs, project.active, project.sessions, project.trash):
                name = os.path.basename(path)
                if home.has(name):
                    _check_owner(project, path, home.status(name).st_uid)
        opened(project.runs).close()
    except SubdeckError as fault:
        return fault
    except RefusedError as refusal:
        hint = "remove it if you did not create it; runs must be in directories inside their project"
        return UsageError(f"{refusal.strerror}", where=str(refusal.filename), hint=hint, code="project.untrusted")
    except OSError:
        return None  # it is not there, or whoever uses it says what is wrong
    return None


def _check_owner(project: paths.Project, path: str, owner: int) -> None:
    if not is_trusted(owner, project.root):
        raise UsageError(
            f"it belongs to {_name_of(owner)}, not to you",
            where=os.path.join(project.root, path),
            hint=f'if you trust its content, add "trusted: [{project.root}]" to {paths.user_settings_file()}',
            code="project.untrusted",
        )


def _name_of(owner: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(owner).pw_name} (user id {owner})"
    except KeyError:
        return f"user id {owner}"


def _is_named(root: str) -> bool:
    """Whether the user's own settings name the project, or a directory above it; `*` names all."""
    from .config.files import trusted_directories  # the YAML reader, for who meets another user's project

    here, named = os.path.realpath(root), map(os.path.expanduser, trusted_directories())
    return any(
        name == "*" or (os.path.isabs(name) and f"{here}/".startswith(f"{os.path.realpath(name).rstrip('/')}/"))
        for name in named
    )


def _is_safe_for_git(root: str) -> bool:
    """Whether git itself would take a repository there, by what the user has told it."""
    from subprocess import DEVNULL, SubprocessError, run

    command = ("git", "config", "--global", "--get-all", "safe.directory")
    try:
        answer = run(command, cwd="/", stdin=DEVNULL, capture_output=True, timeout=_GIT_PATIENCE_S, check=False)
    except (OSError, SubprocessError):
        return False
    named: list[str] = []
    for line in os.fsdecode(answer.stdout).splitlines():
        named = [*named, line] if line else []  # an empty one takes back those before it
    here = os.path.realpath(root)
    return any(
        name in ("*", here) or (name.endswith("/*") and here.startswith(name[:-1]))
        for name in map(os.path.expanduser, named)
    )
