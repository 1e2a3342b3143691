"""Codex as a program: where it is, what it keeps where, and how it is started as a child."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ..child import Command, Start, child_environment, existing, own_variables
from ..program import own_or_installed, package, package_dir

PACKAGE = "codex"
"""Its name on npm, without the scope."""

_INSTALL = "install it (npm install -g @openai/codex)"
KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY")


def find_codex(command: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the command with its program as an absolute path. Raises AgentUnavailable saying what to do."""
    return own_or_installed(command, name, kind="codex", install=_INSTALL)


def codex_version(command: Sequence[str]) -> str | None:
    """Return the version in the package.json above the program; None where there is none to read."""
    directory = package_dir(command, PACKAGE)
    return (package(directory).version or None) if directory else None


def home() -> str:
    """Return where Codex keeps login, settings and conversations; nothing of ours moves it."""
    return home_in({**os.environ, **own_variables(os.environ)})


def home_in(environment: Mapping[str, str]) -> str:
    """Return the same for a child with this environment."""
    return environment.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")


def found_credentials(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is seen without starting it: keys, a login, and settings, which may name a provider that needs
    neither.
    """
    keys = tuple(name for name in KEYS if environment.get(name))
    files = (os.path.join(home_in(environment), name) for name in ("auth.json", "config.toml"))
    return (*keys, *filter(os.path.isfile, files))


def app_server_command(start: Start) -> Command:
    """Return how the app-server is started; what it has to do is said on its stdin."""
    meta = start.meta
    if meta.system_prompt_path:
        existing(os.path.join(start.run_dir, meta.system_prompt_path), "start the run again")
    existing(start.prompt_path, "start the run again")
    return Command((*meta.agent_command, "app-server"), child_environment(meta), pipe=True)
