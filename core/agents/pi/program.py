"""pi as a program: where it is, its version and its tools, without running it; and how it is started as a child."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ... import paths
from ...run.model import PromptMode, RunMeta, ToolPolicy, Tools
from ...system import files
from ...text.decoding import UNDECODABLE, decode
from .._json_lines import mapping, string
from ..child import Command, child_environment, existing
from ..program import is_since, own_or_installed, package, package_dir as package_above, version_numbers

DEFAULT_TOOLS = ("read", "bash", "edit", "write")
"""What pi offers when it is told nothing."""

BUILTIN_TOOLS = (*DEFAULT_TOOLS, "grep", "find", "ls")
"""All that every pi brings along; extensions may add more."""

SERVER_TOOLS = ("codemode", "tool_search")
"""What pi brings along beside them since `SERVERS_SINCE`; off unless they are named, or an MCP server needs them."""

MAX_THINKING_SINCE = (0, 80, 6)
EXCLUDES_SINCE = (0, 77)
"""`--exclude-tools`"""
TRUST_SINCE = (0, 79)
"""Reads what a project brings along for pi only once its user trusts the project."""
SERVERS_SINCE = (0, 99)
"""Starts the MCP servers of its `mcp.json`."""
NO_SERVERS_SINCE = (1, 0, 4)
"""`--no-mcp`"""

PACKAGES = ("@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent")
"""By which names npm knows pi: today's, and the one of 0.73 and before, which works with node 20."""

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
"""The variable that tells this extension, and the offline agent, which tools to ask for; each may end with a `*`."""


class _Settings(Struct, rename="camel"):
    default_provider: Any = None


def find_pi(command: Sequence[str] = ("pi",), name: str = "pi") -> tuple[str, ...]:
    """Return the command with its program as an absolute path; raises AgentUnavailable saying what to do."""
    return own_or_installed(command, name, kind="pi", install=_INSTALL)


def found_credentials(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of keys in the environment, and pi's file of logins where there is one."""
    keys = sorted(name for name, key in environment.items() if name.endswith("_API_KEY") and key)
    logins = os.path.join(paths.agent_dir(), "auth.json")
    return (*keys, *((logins,) if os.path.isfile(logins) else ()))


def builtin_tools(version: str | None) -> tuple[str, ...]:
    """Return what this version of pi brings along; without a known version all that any brings."""
    return BUILTIN_TOOLS if is_since(version, SERVERS_SINCE) is False else (*BUILTIN_TOOLS, *SERVER_TOOLS)


def pi_version(command: Sequence[str]) -> str | None:
    """Return the version in the package.json above the program, as `0.73.1`; None where there is none to read."""
    directory = package_dir(command)
    return (package(directory).version or None) if directory else None


def package_dir(command: Sequence[str]) -> str | None:
    """Return the directory of pi's package above the program; None where there is none."""
    return package_above(command, _PACKAGE)


def needed_node(command: Sequence[str]) -> str:
    """Return the least version of node that pi's package asks for, as `22.19.0`; empty where it does not say."""
    directory = package_dir(command)
    engines = mapping(package(directory).engines) if directory else {}
    return ".".join(map(str, version_numbers(string(engines.get("node")))))


def node_problem(command: Sequence[str], said: str) -> str:
    """Say that pi ended because its node is too old, where that is so; `said` is what it wrote on stderr.

    The last line of what a node writes about an error that nobody caught is its own version.
    """
    found = re.search(_NODE, said)
    needed = needed_node(command) if found else ""
    if not found or not needed or version_numbers(found[1]) >= version_numbers(needed):
        return ""
    return f"pi {pi_version(command) or ''} requires node {needed} or newer, but this is {found[1]}"


def child_command(meta: RunMeta, run_dir: str) -> Command:
    """Return argv and environment of a child; raises LaunchError when a file that it needs is missing.

    The task comes by stdin, because pi reads a leading `-` or `@` in argv as something else: in rpc mode as the first
    command, else as it is.
    """
    env, flags = environment_of(meta), flags_of(meta, run_dir, _without_project(meta))
    if _is_copilot(meta):
        flags += ("-e", existing(COPILOT_EXTENSION, "install subdeck again"))
        env[COPILOT_INITIATOR] = "agent"
    return Command((*meta.agent_command, *flags), env, unset=(COPILOT_INITIATOR,), pipe=bool(meta.talk))


def _is_copilot(meta: RunMeta) -> bool:
    """Whether the effective model is one of GitHub Copilot; pi does not mind the case of a provider."""
    reference = meta.resolved_model or f"{_default_provider(meta.cwd)}/"
    provider, slash, _ = reference.partition("/")
    return bool(slash) and provider.lower() == COPILOT_PROVIDER


def _default_provider(cwd: str) -> str | None:
    """Return the one in pi's settings, those of the directory before the user's; None where none is set."""
    for path in (os.path.join(cwd, ".pi", "settings.json"), os.path.join(paths.agent_dir(), "settings.json")):
        try:
            provider = decode(files.read(path), _Settings).default_provider
        except (OSError, *UNDECODABLE):
            continue
        if isinstance(provider, str) and provider:
            return provider
    return None


def asked_of(meta: RunMeta) -> tuple[str, ...]:
    """Return the tools that the child has to ask for before each call: those of the run's rules, where it can ask."""
    if not meta.talk or meta.permissions is None:
        return ()
    from ...permissions.rules import guarded_tools  # most wrappers do without

    return guarded_tools(meta.permissions)


def environment_of(meta: RunMeta) -> dict[str, str]:
    """Return the variables of a child of pi, or of the offline agent."""
    asked = asked_of(meta)
    return child_environment(meta) | ({ASKED_TOOLS: ",".join(asked)} if asked else {})


def flags_of(meta: RunMeta, run_dir: str, without_project: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what pi is told about a run, and the offline agent, which takes the same flags but those of a project."""
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
    """Whether pi reads AGENTS.md and CLAUDE.md; not with a replaced system prompt, unless the preset asks for it."""
    if meta.context_files is not None:
        return meta.context_files
    return not (meta.prompt_mode == PromptMode.REPLACE and meta.system_prompt_path)


def _without_project(meta: RunMeta) -> tuple[str, ...]:
    """Return what keeps pi from loading what the project brings along; before 0.79 that is all that anybody does."""
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
    from ...run.tool_policy import DELEGATION_TOOLS, FINALIZE_TOOL  # most wrappers do without

    return (*tools.excluded, *sorted(DELEGATION_TOOLS - {FINALIZE_TOOL, *tools.excluded}))


def _system_prompt(meta: RunMeta, run_dir: str) -> tuple[str, ...]:
    if not meta.system_prompt_path:
        return ()
    path = existing(os.path.join(run_dir, meta.system_prompt_path), "start the run again")
    return ("--system-prompt" if meta.prompt_mode == PromptMode.REPLACE else "--append-system-prompt", path)
