"""What the user's own settings of Codex say about a project: whether it is trusted, and what holds if nothing is said.

Given a directory that it may write and a project without a level of trust, the app-server of Codex 0.169 writes
`trust_level = "trusted"` into the user's settings: then programs of a checkout are started, in that run and in each
later one. So a run names a level of its own for such a project, and keeps what Codex would do without one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ...system import files
from ..json_lines import items, mapping, string

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
