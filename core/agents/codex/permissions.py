"""An agent's permissions in Codex's terms: a sandbox and features to turn off, instead of a list of tools.

If a thread gets a directory that it may write, and its project has no trust level, the app-server of Codex 0.169 writes
`trust_level = "trusted"` into the user's settings. Programs of the checkout would then start in this run and every
later one. So a run sets its own level for such a project, and keeps Codex's behavior without one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ...run.model import Permissions as RunPermissions, ToolPolicy, Tools
from ...run.outcome import FINALIZE_TOOL
from ...system import files
from .._json_lines import items, mapping, string

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ...permissions.rules import Rule

READERS = frozenset({"read", "grep", "find", "ls"})
WRITERS = frozenset({"bash", "edit", "write"})
WEB_SEARCH = "web_search"
TOOL_NAMES = ("read", "grep", "find", "ls", "bash", "edit", "write", WEB_SEARCH)
"""The shared tool names, and Codex's additional one."""

READ_ONLY, WORKSPACE_WRITE = "read-only", "workspace-write"

NESTED = frozenset({"Agent", "Task"})
"""Other agents' names of the tool that starts nested agents."""

TRUSTED = frozenset(
    {
        *(
            "base64",
            "basename",
            "cat",
            "cd",
            "cmp",
            "cut",
            "date",
            "df",
            "diff",
            "dirname",
            "du",
            "echo",
            "env",
            "expr",
        ),
        *("false", "file", "find", "git", "grep", "head", "id", "less", "ls", "more", "nl", "numfmt", "od", "paste"),
        *("printenv", "printf", "ps", "pwd", "readlink", "realpath", "rev", "rg", "sed", "seq", "sort", "stat", "tac"),
        *("tail", "test", "tr", "tree", "true", "type", "uname", "uniq", "wc", "which", "whoami"),
    }
)
"""Commands that Codex may run without asking if they only read, regardless of settings; deliberately too many."""

_SHELL = ("shell_tool", "unified_exec")
_OTHERS = ("multi_agent", "apps", "plugins", "goals")
"""Features that bypass any list of tools: starting agents, using services."""
_LOOKING = ("view_image", "skill_search", "tool_suggest")


class Permissions(Struct, frozen=True):
    """Settings for Codex; without a sandbox the user's own permissions apply."""

    sandbox: str | None = None
    features_off: tuple[str, ...] = ()
    web_search_off: bool = False
    servers_off: bool = False
    """Whether to start no MCP servers."""

    @property
    def config(self) -> dict[str, Any]:
        """Return them as Codex settings, except the sandbox and the servers."""
        config: dict[str, Any] = {}
        if self.features_off:
            config["features"] = dict.fromkeys(self.features_off, False)
        if self.web_search_off:
            config["web_search"] = "disabled"
        return config


def permissions_of(tools: Tools) -> Permissions:
    """Return the permissions for a run's tools; `denied_in_part` has accepted them."""
    if tools.resolved is not None:
        return _allowed(frozenset(tools.resolved) - {FINALIZE_TOOL})
    if tools.policy != ToolPolicy.DENY:
        return Permissions()
    denied = frozenset(tools.excluded)
    sandbox = READ_ONLY if denied >= {"edit", "write"} else None
    nested = ("multi_agent",) if denied & NESTED else ()
    return Permissions(sandbox, nested, web_search_off=WEB_SEARCH in denied)


def servers_config(tools: Tools, servers: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
    """Return settings that turn off these MCP servers, or give them the run's variables.

    Codex does not pass its environment to servers, so subdeck's server would offer an agent to delegate. Each entry
    contains the server's command or URL, because Codex refuses settings without it if it does not read the project's.
    """
    is_off = permissions_of(tools).servers_off
    entries: dict[str, Any] = {}
    for name, server in servers.items():
        fields = mapping(server)
        way = next((way for way in ("command", "url") if fields.get(way)), None)
        if is_off:
            entries[name] = {"enabled": False, **({way: fields[way]} if way else {})}
        elif way == "command":
            entries[name] = {"command": fields["command"], "env": variables}
    return {"mcp_servers": entries} if entries else {}


def _allowed(names: frozenset[str]) -> Permissions:
    uses_shell = bool(names & (READERS | WRITERS))
    return Permissions(
        sandbox=WORKSPACE_WRITE if names & WRITERS else READ_ONLY,
        features_off=_OTHERS if uses_shell else (*_OTHERS, *_LOOKING, *_SHELL),
        web_search_off=WEB_SEARCH not in names,
        servers_off=True,
    )


def denied_in_part(tools: Tools) -> str:
    """Return why Codex cannot enforce a denial; empty if it can."""
    if tools.resolved is not None or tools.policy != ToolPolicy.DENY:
        return ""
    from ...run.tool_policy import DELEGATION_TOOLS  # not needed by a wrapper

    denied = frozenset(tools.excluded)
    if "bash" in denied or denied & READERS:
        return "it uses shell commands for reading and everything else"
    if len(denied & {"edit", "write"}) == 1:
        return "it has only one tool to write files"
    if others := sorted(denied - {*TOOL_NAMES, *DELEGATION_TOOLS, *NESTED}):
        return f"it cannot turn off {', '.join(others)}"
    return ""


def fault_of_rule(rule: Rule) -> str:
    """Return why Codex cannot ask about everything a rule names; empty if it can."""
    if rule.tool in ("edit", "write"):
        return ""
    if rule.tool != "bash":
        return "it asks only about commands and file changes, and reads with commands"
    if rule.pattern is None:
        return "it runs read-only commands without asking"
    first = (rule.pattern.removeprefix("=").split() or ("*",))[0]
    name = first.strip("'\"").rpartition("/")[2]
    if "*" in name or name in TRUSTED:
        return f"it runs read-only {f'{name} commands' if name in TRUSTED else 'commands'} without asking"
    return ""


def rules_advice(rules: RunPermissions | None) -> tuple[str, ...]:
    """Return a note on rules that Codex applies first."""
    texts = (*rules.ask, *rules.deny) if rules else ()
    if not any(text.startswith("bash") for text in texts):
        return ()
    return (
        "permissions: codex does not ask for commands that your own Codex rules (its rules "
        "directory) allow; commands allowed here may run outside its sandbox",
    )


def advice(tools: Tools) -> tuple[str, ...]:
    """Return notes on the differences from the listed tools."""
    names = frozenset(tools.resolved or ()) - {FINALIZE_TOOL}
    if tools.resolved is None:
        if permissions_of(tools).sandbox == READ_ONLY:
            return ("without edit and write, codex runs all commands in a read-only sandbox",)
        return ()
    if not names & (READERS | WRITERS) or "bash" in names:
        return ()
    if names & WRITERS:
        where = "only in the project and in temporary directories"
        return (f"tools: codex edits with shell commands, in a sandbox that can write {where}",)
    return ("tools: codex reads with shell commands, in a read-only sandbox without network access",)


# --- the user's own settings -----------------------------------------------------------------------------------------

SYSTEM_SETTINGS = "/etc/codex/config.toml"

READ_ONLY_HERE = (
    "codex is read-only here: your Codex settings neither trust this project nor set a "
    "sandbox_mode. List tools in the preset, such as read, edit and bash, or change your "
    "Codex settings"
)
"""The warning about a project without any settings."""

_FILE = "config.toml"
_OF_PROJECT = "project"


class OwnSettings(Struct, frozen=True):
    """Codex settings outside the project."""

    servers: dict[str, Any] = {}
    """MCP servers, including a project's that Codex reads."""
    projects: dict[str, Any] = {}
    """Trust levels by directory."""
    has_sandbox: bool = False
    """Whether the user set a sandbox."""
    has_approval: bool = False
    """Whether the user set an approval policy."""

    @classmethod
    def of_answer(cls, result: dict[str, Any]) -> OwnSettings:
        """Read the answer to `config/read`, with its layers."""
        config = mapping(result.get("config"))
        layers = [mapping(layer) for layer in items(result.get("layers"))]
        owned = [layer for layer in layers if mapping(layer.get("name")).get("type") != _OF_PROJECT]
        projects: dict[str, Any] = {}
        for layer in reversed(owned):  # the first layer wins
            projects |= mapping(mapping(layer.get("config")).get("projects"))
        return cls._of(config, projects if layers else mapping(config.get("projects")))

    @classmethod
    def of_files(cls, home: str, cwd: str) -> OwnSettings:
        """Read the files that Codex reads, for use without an app-server."""
        merged: dict[str, Any] = {}
        for file in (SYSTEM_SETTINGS, os.path.join(home, _FILE)):
            settings = _read(file)
            for name in ("mcp_servers", "projects"):
                settings[name] = mapping(merged.get(name)) | mapping(settings.get(name))
            merged |= settings
        servers = mapping(merged.get("mcp_servers"))
        for directory in _upwards(cwd):
            servers = mapping(_read(os.path.join(directory, ".codex", _FILE)).get("mcp_servers")) | servers
        return cls._of({**merged, "mcp_servers": servers}, mapping(merged.get("projects")))

    @classmethod
    def _of(cls, config: dict[str, Any], projects: dict[str, Any]) -> OwnSettings:
        chosen = mapping(mapping(config.get("profiles")).get(string(config.get("profile"))))  # older than 0.169
        effective = config | {name: value for name, value in chosen.items() if value is not None}
        return cls(
            servers=mapping(config.get("mcp_servers")),
            projects=projects,
            has_sandbox=bool(effective.get("sandbox_mode") or effective.get("default_permissions")),
            has_approval=bool(effective.get("approval_policy")),
        )

    def has_level(self, cwd: str) -> bool:
        """Whether the user set a trust level for a directory's project."""
        return any(mapping(self.projects.get(path)).get("trust_level") for path in project_paths(cwd))

    def is_read_only(self, cwd: str) -> bool:
        """Whether Codex is read-only there because no setting applies."""
        return not self.has_sandbox and not self.has_level(cwd)


def project_paths(cwd: str) -> tuple[str, ...]:
    """Return the directories that Codex checks for a trust level."""
    real = os.path.realpath(cwd)
    paths = [cwd, real]
    for start in (cwd, real):
        root = next((above for above in _upwards(start) if os.path.lexists(os.path.join(above, ".git"))), start)
        paths += [root, *_main_checkout(root)]
    return tuple(dict.fromkeys(paths))


def _main_checkout(root: str) -> Iterator[str]:
    """Yield the main checkout's directory, if `root` is a git worktree."""
    try:
        text = files.read(os.path.join(root, ".git")).decode("utf-8", "replace")
    except OSError:
        return
    if text.startswith("gitdir:"):
        directory = os.path.normpath(os.path.join(root, text.removeprefix("gitdir:").strip()))
        git, name = os.path.split(os.path.dirname(directory))
        if name == "worktrees" and os.path.basename(git) == ".git":
            yield from dict.fromkeys((os.path.dirname(git), os.path.realpath(os.path.dirname(git))))


def _upwards(directory: str) -> Iterator[str]:
    """Yield a directory and its parents, except the root."""
    while directory != (above := os.path.dirname(directory)):
        yield directory
        directory = above


def _read(file: str) -> dict[str, Any]:
    import tomllib  # few runs need it

    try:
        # Codex also follows links.
        with open(files.open_regular(file, follow=True)[0], "rb") as opened:
            return tomllib.loads(opened.read().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return {}
