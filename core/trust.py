"""Whose directories are used: this user's, and those of other users that this user trusts.

Files below `.pi/subagents` decide what is run and with which prompts, so another user's are refused, as git refuses
another user's repository. To allow them: the user's setting `trusted`, git's `safe.directory`, or sudo.
"""

from __future__ import annotations

import os

from . import paths
from .errors import SubdeckError, UsageError
from .system.directory import RefusedError, opened

_GIT_PATIENCE_S = 5.0


def find_project(cwd: str) -> paths.Project:
    """Find the project of a directory as `paths.find_project` does; trusted directories count as this user's own."""
    return paths.find_project(cwd, is_trusted)


def own_project(cwd: str) -> paths.Project:
    """Return the project of a directory. Raises UsageError if its `.pi` is another user's or leads out of it."""
    project = find_project(cwd)
    check(project)
    return project


def is_trusted(owner: int, root: str) -> bool:
    """Whether a project with files of this user id may be used.

    Raises SettingsError if the owner is another user and this user's settings cannot be read.
    """
    return paths.is_own(owner, root) or _is_named(root) or _is_safe_for_git(root)


def check(project: paths.Project) -> None:
    """Raise UsageError if a project's directories belong to another user, or lead out of it."""
    if fault := fault_of(project):
        raise fault


def fault_of(project: paths.Project) -> SubdeckError | None:
    """Return why a project's files may not be used; None if they may, or if there are none yet."""
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
        return None  # missing, or its user reports the error
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
    """Whether the user's own settings name the project or a directory above it; `*` names all."""
    from .config.files import trusted_directories  # the YAML reader, needed only for another user's project

    here, named = os.path.realpath(root), map(os.path.expanduser, trusted_directories())
    return any(
        name == "*" or (os.path.isabs(name) and f"{here}/".startswith(f"{os.path.realpath(name).rstrip('/')}/"))
        for name in named
    )


def _is_safe_for_git(root: str) -> bool:
    """Whether the user's git configuration marks a repository there as safe."""
    from subprocess import DEVNULL, SubprocessError, run

    command = ("git", "config", "--global", "--get-all", "safe.directory")
    try:
        answer = run(command, cwd="/", stdin=DEVNULL, capture_output=True, timeout=_GIT_PATIENCE_S, check=False)
    except (OSError, SubprocessError):
        return False
    named: list[str] = []
    for line in os.fsdecode(answer.stdout).splitlines():
        named = [*named, line] if line else []  # an empty one discards the previous ones
    here = os.path.realpath(root)
    return any(
        name in ("*", here) or (name.endswith("/*") and here.startswith(name[:-1]))
        for name in map(os.path.expanduser, named)
    )
