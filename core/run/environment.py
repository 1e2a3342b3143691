"""The environment of each program of a run: its wrapper, its agent, its setup command and its check.

Variables that the settings add for the agent alone reach the wrapper in a single variable, which no other program gets.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

import msgspec

from .. import paths
from ..system.processes import RUN_MARK
from ..text.decoder import decode
from .model import RunMeta

OTHER_REPOSITORY = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE",
    "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
})  # fmt: skip
"""Variables set by git hooks: with them, an agent in a worktree would change the user's index and branch."""
OF_A_RUN = frozenset({paths.AGENT_ENVIRONMENT, paths.CHILD, RUN_MARK})
"""Variables that mark a program as part of a run; a host's own process may have them."""


def for_wrapper(
    agent_env: Mapping[str, str] | None = None,
    *,
    without: Collection[str] = (),
    added: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return a wrapper's environment; `agent_env` has the variables that the settings add for its agent."""
    environment = {name: value for name, value in os.environ.items() if name not in without} | dict(added or {})
    if agent_env:
        environment[paths.AGENT_ENVIRONMENT] = msgspec.json.encode(agent_env).decode("utf-8", "replace")
    return environment


def for_agent(added: Mapping[str, str], unset: Collection[str], directory: str) -> dict[str, str]:
    """Return the environment of an agent that the wrapper starts: `added` comes from the agent's kind."""
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    from_settings = own_variables(environment)
    environment.pop(paths.AGENT_ENVIRONMENT, None)
    return environment | from_settings | {**added, "PWD": directory}


def for_command(directory: str, added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a setup command or a check."""
    environment = {name: value for name, value in os.environ.items() if name != paths.AGENT_ENVIRONMENT}
    return {**environment, "PWD": directory, **added}


def own_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the settings add for this run's agent. Raises the errors in `UNDECODABLE`."""
    return decode(environment.get(paths.AGENT_ENVIRONMENT) or "{}", dict[str, str])


def child_environment(meta: RunMeta) -> dict[str, str]:
    """Return the variables that mark an agent, and the programs that it starts, as part of a run."""
    return {paths.CHILD: "1", RUN_MARK: meta.run_id}
