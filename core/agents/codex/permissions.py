"""What a child may do, in the words of Codex: it has no list of tools, but a sandbox and parts that can be left out.

Given a directory that it may write and a project without a level of trust, the app-server of Codex 0.169 writes
`trust_level = "trusted"` into the user's settings: then programs of a checkout are started, in that run and in each
later one. So a run names a level of its own for such a project, and keeps what Codex would do without one.
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

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from ...permissions.rules import Rule

READERS = frozenset({"read", "grep", "find", "ls"})
WRITERS = frozenset({"bash", "edit", "write"})
WEB_SEARCH = "web_search"
TOOL_NAMES = ("read", "grep", "find", "ls", "bash", "edit", "write", WEB_SEARCH)
"""One vocabulary for all agents, and what Codex has beside it."""

READ_ONLY, WORKSPACE_WRITE = "read-only", "workspace-write"

NESTED = frozenset({"Agent", "Task"})
"""As the tool is called elsewhere by which an agent starts agents of its own."""

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
"""Commands that Codex may run without asking, whatever is set, as far as they only read; rather too many of them."""

_SHELL = ("shell_tool", "unified_exec")
_OTHERS = ("multi_agent", "apps", "plugins", "goals")
"""Features by which a child could do what is in no list: start agents of its own, reach services."""
_LOOKING = ("view_image", "skill_search", "tool_suggest")


class Permissions(Struct, frozen=True):
    """What Codex is told; without a sandbox the user's own permissions hold."""

    sandbox: str | None = None
    features_off: tuple[str, ...] = ()
    web_search_off: bool = False
    servers_off: bool = False
    """Whether no MCP server may be started."""

    @property
    def config(self) -> dict[str, Any]:
        """Return it as settings of Codex, but for the sandbox and the servers."""
        config: dict[str, Any] = {}
        if self.features_off:
            config["features"] = dict.fromkeys(self.features_off, False)
        if self.web_search_off:
            config["web_search"] = "disabled"
        return config


def permissions_of(tools: Tools) -> Permissions:
    """Return what Codex is told about the tools of a run, of which `problem_with` found none."""
    if tools.resolved is not None:
        return _allowed(frozenset(tools.resolved) - {FINALIZE_TOOL})
    if tools.policy != ToolPolicy.DENY:
        return Permissions()
    denied = frozenset(tools.excluded)
    sandbox = READ_ONLY if denied >= {"edit", "write"} else None
    nested = ("multi_agent",) if denied & NESTED else ()
    return Permissions(sandbox, nested, web_search_off=WEB_SEARCH in denied)


def servers_config(tools: Tools, servers: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
    """Return settings by which these MCP servers are not started, or by which they know whose child starts them.

    Codex keeps its own environment from them, and a server of ours would offer a child to delegate. Each entry says how
    its server is reached: without that Codex refuses the settings where it does not read the project's.
    """
    is_off = permissions_of(tools).servers_off
    said: dict[str, Any] = {}
    for name, server in servers.items():
        fields = mapping(server)
        way = next((way for way in ("command", "url") if fields.get(way)), None)
        if is_off:
            said[name] = {"enabled": False, **({way: fields[way]} if way else {})}
        elif way == "command":
            said[name] = {"command": fields["command"], "env": variables}
    return {"mcp_servers": said} if said else {}


def _allowed(names: frozenset[str]) -> Permissions:
    uses_shell = bool(names & (READERS | WRITERS))
    return Permissions(
        sandbox=WORKSPACE_WRITE if names & WRITERS else READ_ONLY,
        features_off=_OTHERS if uses_shell else (*_OTHERS, *_LOOKING, *_SHELL),
        web_search_off=WEB_SEARCH not in names,
        servers_off=True,
    )


def denied_in_part(tools: Tools) -> str:
    """Say which denial Codex could not obey; empty where it can."""
    if tools.resolved is not None or tools.policy != ToolPolicy.DENY:
        return ""
    from ...run.tool_policy import DELEGATION_TOOLS  # a wrapper asks nothing here

    denied = frozenset(tools.excluded)
    if "bash" in denied or denied & READERS:
        return "it uses shell commands for reading and everything else"
    if len(denied & {"edit", "write"}) == 1:
        return "it has only one tool to write files"
    if others := sorted(denied - {*TOOL_NAMES, *DELEGATION_TOOLS, *NESTED}):
        return f"it cannot turn off {', '.join(others)}"
    return ""


def fault_of_rule(rule: Rule) -> str:
    """Say why Codex cannot be made to ask about all that a rule names; empty where it can."""
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
    """Say what Codex decides before rules of ours."""
    texts = (*rules.ask, *rules.deny) if rules else ()
    if not any(text.startswith("bash") for text in texts):
        return ()
    return (
        "permissions: codex does not ask for commands that your own Codex rules (its rules "
        "directory) allow; commands allowed here may run outside its sandbox",
    )


def advice(tools: Tools) -> tuple[str, ...]:
    """Say what differs from the tools that are named."""
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
"""The warning about a project of which nobody said anything."""

_FILE = "config.toml"
_OF_PROJECT = "project"


class OwnSettings(Struct, frozen=True):
    """The settings of Codex that are not a project's."""

    servers: dict[str, Any] = {}
    """The MCP servers, also those of a project that Codex reads."""
    projects: dict[str, Any] = {}
    """The level of trust of directories."""
    has_sandbox: bool = False
    """Whether the user chose a sandbox."""
    has_approval: bool = False
    """Whether the user said when Codex has to ask."""

    @classmethod
    def of_answer(cls, result: dict[str, Any]) -> OwnSettings:
        """Take the answer to `config/read`, whose layers come with it."""
        config = mapping(result.get("config"))
        layers = [mapping(layer) for layer in items(result.get("layers"))]
        owned = [layer for layer in layers if mapping(layer.get("name")).get("type") != _OF_PROJECT]
        projects: dict[str, Any] = {}
        for layer in reversed(owned):  # the first one decides
            projects |= mapping(mapping(layer.get("config")).get("projects"))
        return cls._of(config, projects if layers else mapping(config.get("projects")))

    @classmethod
    def of_files(cls, home: str, cwd: str) -> OwnSettings:
        """Read the files that Codex reads, where no app-server says what is in them."""
        own: dict[str, Any] = {}
        for file in (SYSTEM_SETTINGS, os.path.join(home, _FILE)):
            settings = _read(file)
            for name in ("mcp_servers", "projects"):
                settings[name] = mapping(own.get(name)) | mapping(settings.get(name))
            own |= settings
        servers = mapping(own.get("mcp_servers"))
        for directory in _upwards(cwd):
            servers = mapping(_read(os.path.join(directory, ".codex", _FILE)).get("mcp_servers")) | servers
        return cls._of({**own, "mcp_servers": servers}, mapping(own.get("projects")))

    @classmethod
    def _of(cls, config: dict[str, Any], projects: dict[str, Any]) -> OwnSettings:
        chosen = mapping(mapping(config.get("profiles")).get(string(config.get("profile"))))  # older than 0.169
        said = config | {name: value for name, value in chosen.items() if value is not None}
        return cls(
            servers=mapping(config.get("mcp_servers")),
            projects=projects,
            has_sandbox=bool(said.get("sandbox_mode") or said.get("default_permissions")),
            has_approval=bool(said.get("approval_policy")),
        )

    def has_level(self, cwd: str) -> bool:
        """Tell whether the user said of a directory's project whether it is trusted."""
        return any(mapping(self.projects.get(path)).get("trust_level") for path in project_paths(cwd))

    def is_read_only(self, cwd: str) -> bool:
        """Tell whether Codex writes nothing there because nobody said anything about it."""
        return not self.has_sandbox and not self.has_level(cwd)


def project_paths(cwd: str) -> tuple[str, ...]:
    """Return the directories by which Codex finds out whether a project is trusted."""
    real = os.path.realpath(cwd)
    paths = [cwd, real]
    for start in (cwd, real):
        root = next((above for above in _upwards(start) if os.path.lexists(os.path.join(above, ".git"))), start)
        paths += [root, *_main_checkout(root)]
    return tuple(dict.fromkeys(paths))


def _main_checkout(root: str) -> Iterator[str]:
    """Yield the directory to which a worktree of git belongs, where `root` is one."""
    try:
        said = files.read(os.path.join(root, ".git")).decode("utf-8", "replace")
    except OSError:
        return
    if said.startswith("gitdir:"):
        directory = os.path.normpath(os.path.join(root, said.removeprefix("gitdir:").strip()))
        git, name = os.path.split(os.path.dirname(directory))
        if name == "worktrees" and os.path.basename(git) == ".git":
            yield from dict.fromkeys((os.path.dirname(git), os.path.realpath(os.path.dirname(git))))


def _upwards(directory: str) -> Iterator[str]:
    """Yield a directory and those above it, but not the topmost."""
    while directory != (above := os.path.dirname(directory)):
        yield directory
        directory = above


def _read(file: str) -> dict[str, Any]:
    import tomllib  # few runs need it

    try:
        # Codex follows links, too.
        with open(files.open_regular(file, follow=True)[0], "rb") as opened:
            return tomllib.loads(opened.read().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return {}
