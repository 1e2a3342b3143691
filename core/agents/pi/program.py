"""pi's program: its path, version and tools without running it; and its command as an agent."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ... import paths
from ...run.environment import child_environment
from ...run.model import PromptMode, RunMeta, ToolPolicy, Tools
from ...system.record import read_record
from .._json_lines import mapping, string
from ..child import Command, existing
from ..program import is_since, own_or_installed, package, package_dir as package_above, version_numbers

DEFAULT_TOOLS = ("read", "bash", "edit", "write")
"""pi's default tools."""

BUILTIN_TOOLS = (*DEFAULT_TOOLS, "grep", "find", "ls")
"""Tools in every version of pi; extensions may add more."""

SERVER_TOOLS = ("codemode", "tool_search")
"""Further tools since `SERVERS_SINCE`; off unless named, or needed by an MCP server."""

MAX_THINKING_SINCE = (0, 80, 6)
EXCLUDES_SINCE = (0, 77)
"""`--exclude-tools`"""
TRUST_SINCE = (0, 79)
"""Loads a project's pi resources only once the user trusts the project."""
SERVERS_SINCE = (0, 99)
"""Starts the MCP servers of its `mcp.json`."""
NO_SERVERS_SINCE = (1, 0, 4)
"""`--no-mcp`"""

PACKAGES = ("@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent")
"""pi's names on npm: the current one, and the one up to 0.73, which works with node 20."""

_INSTALL = f"install it (npm install -g {PACKAGES[0]}; with node before 22.19: {PACKAGES[1]})"
_PACKAGE = "pi-coding-agent"

_NODE = r"(?m)^Node\.js v([0-9][0-9.]{0,30})\s*$"

COPILOT_PROVIDER = "github-copilot"
COPILOT_INITIATOR = "PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR"
_EXTENSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "extension")
COPILOT_EXTENSION = os.path.join(_EXTENSIONS, "copilot.ts")
FINALIZE_EXTENSION = os.path.join(_EXTENSIONS, "finalize.ts")
ASK_EXTENSION = os.path.join(_EXTENSIONS, "ask.ts")
ASKED_TOOLS = "SUBDECK_ASKED_TOOLS"
"""The variable with the tools for which this extension and the offline agent ask; each may end with `*`."""


class _Settings(Struct, rename="camel"):
    default_provider: Any = None


def find_pi(command: Sequence[str] = ("pi",), name: str = "pi") -> tuple[str, ...]:
    """Return the command with its program as an absolute path. Raises AgentUnavailable with a way out."""
    return own_or_installed(command, name, kind="pi", install=_INSTALL)


def found_credentials(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of keys in the environment, and pi's login file if it exists."""
    keys = sorted(name for name, key in environment.items() if name.endswith("_API_KEY") and key)
    logins = os.path.join(paths.agent_dir(), "auth.json")
    return (*keys, *((logins,) if os.path.isfile(logins) else ()))


def builtin_tools(version: str | None) -> tuple[str, ...]:
    """Return this version's built-in tools; those of all versions if it is unknown."""
    return BUILTIN_TOOLS if is_since(version, SERVERS_SINCE) is False else (*BUILTIN_TOOLS, *SERVER_TOOLS)


def pi_version(command: Sequence[str]) -> str | None:
    """Return the version from the package.json above the program, as `0.73.1`; None if there is none."""
    directory = package_dir(command)
    return (package(directory).version or None) if directory else None


def package_dir(command: Sequence[str]) -> str | None:
    """Return the directory of pi's package above the program; None if there is none."""
    return package_above(command, _PACKAGE)


def needed_node(command: Sequence[str]) -> str:
    """Return the minimum node version of pi's package, as `22.19.0`; empty if it names none."""
    directory = package_dir(command)
    engines = mapping(package(directory).engines) if directory else {}
    return ".".join(map(str, version_numbers(string(engines.get("node")))))


def node_problem(command: Sequence[str], output: str) -> str:
    """Return a message if pi ended because its node is too old, or empty; `output` is its stderr.

    node ends the report of an uncaught error with its own version.
    """
    match = re.search(_NODE, output)
    needed = needed_node(command) if match else ""
    if not match or not needed or version_numbers(match[1]) >= version_numbers(needed):
        return ""
    return f"pi {pi_version(command) or ''} requires node {needed} or newer, but this is {match[1]}"


def child_command(meta: RunMeta, run_dir: str) -> Command:
    """Return argv and environment of an agent. Raises LaunchError if a required file is missing.

    The task comes on stdin, because pi interprets a leading `-` or `@` in argv: in rpc mode as the first command,
    otherwise as plain text.
    """
    env, flags = environment_of(meta), flags_of(meta, run_dir, _without_project(meta))
    if _is_copilot(meta):
        flags += ("-e", existing(COPILOT_EXTENSION, "install subdeck again"))
        env[COPILOT_INITIATOR] = "agent"
    return Command((*meta.agent_command, *flags), env, unset=(COPILOT_INITIATOR,), pipe=bool(meta.talk))


def _is_copilot(meta: RunMeta) -> bool:
    """Whether the run's model is from GitHub Copilot; pi ignores the case of a provider."""
    reference = meta.resolved_model or f"{_default_provider(meta.cwd)}/"
    provider, slash, _ = reference.partition("/")
    return bool(slash) and provider.lower() == COPILOT_PROVIDER


def _default_provider(cwd: str) -> str | None:
    """Return the provider in pi's settings, the directory's before the user's; None if none is set."""
    for path in (os.path.join(cwd, ".pi", "settings.json"), os.path.join(paths.agent_dir(), "settings.json")):
        provider = read_record(path, _Settings, _Settings()).default_provider
        if isinstance(provider, str) and provider:
            return provider
    return None


def asked_of(meta: RunMeta) -> tuple[str, ...]:
    """Return the tools to ask for before each call, by the run's rules; empty if it cannot ask."""
    if not meta.talk or meta.permissions is None:
        return ()
    from ...permissions.rules import guarded_tools  # most wrappers don't need it

    return guarded_tools(meta.permissions)


def environment_of(meta: RunMeta) -> dict[str, str]:
    """Return the variables of a pi agent or an offline agent."""
    asked = asked_of(meta)
    return child_environment(meta) | ({ASKED_TOOLS: ",".join(asked)} if asked else {})


def flags_of(meta: RunMeta, run_dir: str, without_project: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a run's flags for pi and the offline agent; only pi has flags for a project."""
    return (
        *("--mode", "rpc" if meta.talk else "json"),
        *(("--model", meta.resolved_model) if meta.resolved_model else ()),
        *(("--session", os.path.join(run_dir, meta.session_path)) if meta.session_path else ("--no-session",)),
        *(("--thinking", meta.thinking) if meta.thinking else ()),
        *_tools(meta.tools),
        *_system_prompt(meta, run_dir),
        *(() if _reads_context_files(meta) else ("-nc",)),
        *without_project,
        *(("-e", existing(FINALIZE_EXTENSION, "install subdeck again")) if meta.finalize else ()),
        *(("-e", existing(ASK_EXTENSION, "install subdeck again")) if asked_of(meta) else ()),
    )


def _reads_context_files(meta: RunMeta) -> bool:
    """Whether pi reads AGENTS.md and CLAUDE.md; by default not with a replaced system prompt."""
    if meta.context_files is not None:
        return meta.context_files
    return not (meta.prompt_mode == PromptMode.REPLACE and meta.system_prompt_path)


def _without_project(meta: RunMeta) -> tuple[str, ...]:
    """Return flags against loading project resources; before 0.79 they also turn off the user's own."""
    if meta.project_resources is not False:
        return ()
    is_gated = is_since(pi_version(meta.agent_command), TRUST_SINCE)
    return ("--no-approve",) if is_gated else ("--no-extensions", "--no-skills", "--no-prompt-templates")


def _tools(tools: Tools) -> tuple[str, ...]:
    if tools.resolved is None:
        return ("--exclude-tools", ",".join(_excluded(tools))) if tools.policy == ToolPolicy.DENY else ()
    named = ("--tools", ",".join(tools.resolved)) if tools.resolved else ("--no-tools",)
    return named if tools.starts_servers else (*named, "--no-mcp")


def _excluded(tools: Tools) -> tuple[str, ...]:
    from ...run.tool_policy import DELEGATION_TOOLS, FINALIZE_TOOL  # most wrappers don't need it

    return (*tools.excluded, *sorted(DELEGATION_TOOLS - {FINALIZE_TOOL, *tools.excluded}))


def _system_prompt(meta: RunMeta, run_dir: str) -> tuple[str, ...]:
    if not meta.system_prompt_path:
        return ()
    path = existing(os.path.join(run_dir, meta.system_prompt_path), "start the run again")
    return ("--system-prompt" if meta.prompt_mode == PromptMode.REPLACE else "--append-system-prompt", path)
