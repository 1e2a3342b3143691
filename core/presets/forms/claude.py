"""Claude Code's agent files: markdown whose frontmatter uses Claude Code's names of tools and models."""

from __future__ import annotations

import re

from ...agents.claude.program import OURS
from ...config.values import Count, Switch
from ...config.yaml_tree import Fields, Text
from ...models.catalog import INHERIT
from ...run.model import WorktreeFrom
from ...text.plain import one_line
from ..file import Preset
from .form import AgentFile, Form, read_frontmatter

_TOOLS = {**OURS, "LS": "ls", "MultiEdit": "edit"}
"""Its tools, old ones included, and subdeck's names for them."""

_NESTED = ("Agent", "Task")
"""Its tools that start subagents, in current and earlier versions; both are denied together."""

_READERS = frozenset({"read", "grep", "find", "ls"})

_NOT_PASSED_ON = {
    "permissionMode": "its permissions come from tools and from your own Claude Code settings",
    "hooks": "agent files cannot start programs, so hooks do not check or block anything",
    "mcpServers": "agent files cannot start servers; the agent can use servers from your own settings that tools lists",
    "skills": "the agent finds skills like any Claude Code session",
    "memory": "agents keep no notes between runs",
    "initialPrompt": "the agent gets only the task of the run",
}

_SILENTLY = ("color", "background")
"""Claude Code's display and scheduling; not used by runs."""


class ClaudeForm:
    def parse(self, text: str, path: str, agent: str) -> Preset | None:
        markdown = read_frontmatter(text)
        if markdown.fields is None:
            return None  # notes beside the agents, which Claude Code also skips
        file = AgentFile(markdown.fields, path)
        if file.value("name") is None:
            file.refuse("name", "it is missing, so Claude Code ignores this file", "add a name")
        tools, denied = _tools(file)
        _check_mode(file, tools)
        isolation = file.value("isolation")
        if isolation not in (None, "worktree"):
            file.refuse("isolation", f'"{one_line(isolation, 40)}" is not supported', "use worktree or nothing")
        for key, why in _NOT_PASSED_ON.items():
            file.leave_out(key, why)
        return file.preset(
            "claude",
            markdown.body,
            silently=_SILENTLY,
            agent=agent,
            model=file.value("model") or INHERIT,
            thinking=file.thinking("effort"),
            tools=tools,
            denied_tools=denied,
            worktree=WorktreeFrom.HEAD if isolation else None,
            context_files=False if file.value("omitClaudeMd", Switch) else None,
            max_turns=file.value("maxTurns", Count),
        )

    def marks(self, fields: Fields) -> bool:
        own_keys = {"disallowedTools", "permissionMode", "mcpServers", "maxTurns", "omitClaudeMd"}
        tools = fields.pairs.get("tools")
        return bool(own_keys & fields.pairs.keys()) or (
            isinstance(tools, Text) and bool(re.match(r"[A-Z*]", tools.value))
        )


def _tools(file: AgentFile) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the allowed and denied tools, by subdeck's names; never both. Raises ContentError."""
    allowed, denied = _named(file, "tools"), _named(file, "disallowedTools") or ()
    if "*" in denied:
        return (), None
    if allowed is None or "*" in allowed:
        return None, denied or None
    return tuple(name for name in allowed if name not in denied), None


def _named(file: AgentFile, key: str) -> tuple[str, ...] | None:
    """Return subdeck's names of the tools in a list; `*` means all tools."""
    written = file.texts(key)
    if written is None or "*" in written:
        return written and ("*",)
    names = (ours for name in written for ours in _ours(_whole(file, key, name)))
    return file.names(key, (name for name in names if key != "tools" or name != "Task"))


def _ours(name: str) -> tuple[str, ...]:
    # A server's name alone also means its tools.
    return _NESTED if name in _NESTED else (_TOOLS.get(name, name.removesuffix("__*")),)


def _whole(file: AgentFile, key: str, written: str) -> str:
    """Return the tool that is named. Raises ContentError for a rule about a part of its actions."""
    name, rule, _ = written.partition("(")
    if rule and not (key == "tools" and name in _NESTED):
        file.refuse(
            key,
            f'"{one_line(written, 60)}" covers only a part of {name}',
            f"write only {name}, or move the rule to permissions in your Claude Code settings",
        )
    return name


def _check_mode(file: AgentFile, tools: tuple[str, ...] | None) -> None:
    """Raise ContentError for an agent that may only plan if its tools allow more."""
    if file.value("permissionMode") == "plan" and not (tools is not None and _READERS.issuperset(tools)):
        hint = 'list the allowed tools, as in "tools: Read, Grep, Glob"'
        file.refuse("permissionMode", "plan forbids all changes, but its tools allow them", hint)


FORM: Form = ClaudeForm()
