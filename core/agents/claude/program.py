"""Claude Code's program: its path, its version, its files, and its command as an agent."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence

from ...run.environment import child_environment
from ...run.model import PromptMode, RunMeta, ToolPolicy
from .._finalize_tool import CLAUDE_NAME, SERVER, server_command
from ..child import Command, Start, existing
from ..program import own_or_installed, package, package_dir
from ..updates import BEGUN, QUOTED, Updates
from .paths import denied_reads

PACKAGE = "@anthropic-ai/claude-code"
_INSTALL = f"install it (npm install -g {PACKAGE})"
_NAME = "claude-code"

SETTLED = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
"""No updates or other unneeded traffic."""

_TALKING = (
    *("--input-format", "stream-json", "--replay-user-messages"),
    *("--permission-prompt-tool", "stdio"),
)
"""Flags to accept messages, report which were read, and ask for permission."""


def find_claude(command: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the command with its program as an absolute path. Raises AgentUnavailable with a way out."""
    return own_or_installed(command, name, kind="claude", install=_INSTALL)


def claude_version(command: Sequence[str]) -> str | None:
    """Return the version from the package.json above the program, or from the path that its installer creates:
    `~/.local/share/claude/versions/2.1.330`. None if neither has one.
    """
    if directory := package_dir(command, _NAME):
        return package(directory).version or None
    directory, name = os.path.split(os.path.realpath(command[0])) if command else ("", "")
    is_version = os.path.basename(directory) == "versions" and re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", name)
    return name if is_version else None


def home(environment: Mapping[str, str]) -> str:
    """Return the directory of its settings, credentials and conversations."""
    return environment.get("CLAUDE_CONFIG_DIR") or os.path.join(environment.get("HOME", ""), ".claude")


def conversation_file(session_id: str, environment: Mapping[str, str]) -> str | None:
    """Return a conversation's file; None if there is none."""
    if os.sep in session_id:
        return None
    projects = os.path.join(home(environment), "projects")
    try:
        files = (os.path.join(projects, name, f"{session_id}.jsonl") for name in os.listdir(projects))
    except OSError:
        return None
    return next(filter(os.path.isfile, files), None)


def child_command(start: Start) -> Command:
    """Return argv and environment of an agent. Raises LaunchError if a required file is missing.

    The task comes on stdin, as a message if the run is interactive, and the prompt in a file; argv contains no text of
    either.
    """
    meta = start.meta
    env = child_environment(meta) | SETTLED
    if meta.thinking == "off":
        env["MAX_THINKING_TOKENS"] = "0"
    flags = (
        *("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
        *(_TALKING if meta.talk else ()),
        *(() if _names_servers(meta) else ("--strict-mcp-config",)),
        *(("--model", meta.resolved_model.removeprefix("anthropic/")) if meta.resolved_model else ()),
        *_session(start),
        *_system_prompt(meta, start.run_dir),
        *_sources(meta),
        *_effort(meta),
        *_budget(start),
        *_tools(meta),
    )
    return Command((*meta.agent_command, *flags), env, pipe=bool(meta.talk))


def _names_servers(meta: RunMeta) -> bool:
    return any(name.startswith("mcp__") for name in meta.tools.resolved or ())


def _session(start: Start) -> tuple[str, ...]:
    meta = start.meta
    if meta.agent_session is None:
        return ("--no-session-persistence",)
    if start.session_id:
        return ("--resume", start.session_id)
    return ("--session-id", meta.child_session_id) if meta.child_session_id else ()


def _system_prompt(meta: RunMeta, run_dir: str) -> tuple[str, ...]:
    if not meta.system_prompt_path:
        return ()
    path = existing(os.path.join(run_dir, meta.system_prompt_path), "start the run again")
    flag = "--system-prompt-file" if meta.prompt_mode == PromptMode.REPLACE else "--append-system-prompt-file"
    # By default, a continued conversation keeps its first system prompt.
    return (flag, path, "--system-prompt-snapshot", "off")


def reads_context_files(prompt_mode: PromptMode, has_prompt: bool, context_files: bool | None) -> bool:
    """Whether it reads CLAUDE.md; by default not with a replaced system prompt."""
    return context_files if context_files is not None else not (prompt_mode == PromptMode.REPLACE and has_prompt)


def _sources(meta: RunMeta) -> tuple[str, ...]:
    """Return whose settings, hooks, plugins and CLAUDE.md it loads; by default the user's and the project's."""
    if not reads_context_files(meta.prompt_mode, bool(meta.system_prompt_path), meta.context_files):
        return ("--setting-sources", "")
    return ("--setting-sources", "user") if meta.project_resources is False else ()


def _effort(meta: RunMeta) -> tuple[str, ...]:
    if meta.thinking in (None, "off"):
        return ()
    return ("--effort", "low" if meta.thinking == "minimal" else str(meta.thinking))


def _budget(start: Start) -> tuple[str, ...]:
    """Make it stop at the run's budget, because it reports costs only at the end of a turn."""
    if start.meta.limits.budget is None:
        return ()
    return ("--max-budget-usd", f"{max(0.0001, start.meta.limits.budget - start.spent):.4f}")


def _tools(meta: RunMeta) -> tuple[str, ...]:
    """Return the tool flags: only the preset's tools, allowed without asking; or the user's own permissions, without
    the tools that the preset denies.
    """
    allowed = [CLAUDE_NAME] if meta.finalize else []
    denied = list(denied_reads(meta.permissions, meta.cwd))
    flags: list[str] = []
    if meta.finalize:
        program, *args = server_command()
        server = {"command": program, "args": args}
        flags += ["--mcp-config", json.dumps({"mcpServers": {SERVER: server}})]
    if meta.tools.resolved is not None:
        named = their_names(meta.tools.resolved)
        built_in = [name for name in named if not name.startswith("mcp__")]
        allowed += [name for name in named if name != CLAUDE_NAME]
        flags += ["--tools", ",".join(built_in), "--permission-mode", "default" if _may_ask(meta) else "dontAsk"]
    elif meta.tools.policy == ToolPolicy.DENY:
        denied += their_names(meta.tools.excluded)
    flags += ["--disallowedTools", ",".join(denied)] if denied else []
    return (*flags, *(("--allowedTools", ",".join(allowed)) if allowed else ()))


def _may_ask(meta: RunMeta) -> bool:
    """Whether rules make it ask about calls of listed tools; any rules do for changes of protected files."""
    return bool(meta.talk and meta.permissions)


def their_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return Claude Code's names of tools, without duplicates or the structured result tool, which is not built in."""
    return tuple(dict.fromkeys(TOOLS.get(name, name) for name in names if name != "subagent_finalize"))


# --- lines -----------------------------------------------------------------------------------------------------------

_DELTA = rb'\{"type":"stream_event","event":\{"type":"content_block_delta"'
_THINKING = rb'\{"type":"system","subtype":"thinking_tokens"'
_TEXT = rb'\{"type":"text_delta","text":"'
_OF_THE_MESSAGE = rb'\}\},"session_id":"[^"]*","parent_tool_use_id":null'
"""A nested agent's lines have the id of its call instead of null."""

UPDATES = Updates(
    (b'{"type":"stream_event","event":{"type":"content_block_delta"', b'{"type":"system","subtype":"thinking_tokens"'),
    b'{"type":"text_delta","text":"',
    re.compile(_TEXT + BEGUN, re.DOTALL),
    behind=re.compile(rb'"' + _OF_THE_MESSAGE),
    several=re.compile(rb"(?:(?:" + _DELTA + rb"|" + _THINKING + rb")[^\n]*\n)+"),
    deltas=re.compile(_TEXT + QUOTED + _OF_THE_MESSAGE, re.DOTALL),
)

TOOLS = {"read": "Read", "grep": "Grep", "find": "Glob", "ls": "Glob", "bash": "Bash", "edit": "Edit", "write": "Write"}
"""subdeck's tool names, mapped to Claude Code's; Glob also lists directories."""

OURS = {theirs: ours for ours, theirs in reversed(TOOLS.items())}
