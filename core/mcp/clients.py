"""Add and remove subdeck's entry in the MCP server settings of Claude Code and Codex."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any, cast

from msgspec import Struct

from ..errors import UsageError
from ..pi_parent.installer import own_command
from ..system.files import content, make_private_directory, open_regular, write_whole
from ..text.decoder import UNDECODABLE, why
from . import _json_member, _toml_table
from ._protocol import Fields

NAME = "subdeck"

CLAUDE = "claude"
CODEX = "codex"

BY_NAME = ("subdeck", "mcp")
"""The command for a project's file, which is shared with other users."""

# Agents' and subdeck's settings directories, network access, and credentials.
_VARIABLES = """
    CLAUDE_CONFIG_DIR CODEX_HOME PI_CODING_AGENT_DIR SUBDECK_LOG
    XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME TMUX_TMPDIR SSH_AUTH_SOCK
    ALL_PROXY HTTP_PROXY HTTPS_PROXY NO_PROXY all_proxy http_proxy https_proxy no_proxy
    NODE_EXTRA_CA_CERTS SSL_CERT_DIR SSL_CERT_FILE
    ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL ANTHROPIC_OAUTH_TOKEN
    CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CODE_USE_BEDROCK CLAUDE_CODE_USE_VERTEX
    CODEX_API_KEY OPENAI_API_KEY OPENAI_BASE_URL AZURE_OPENAI_API_KEY
    AWS_ACCESS_KEY_ID AWS_BEARER_TOKEN_BEDROCK AWS_PROFILE AWS_REGION AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
    GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_APPLICATION_CREDENTIALS GOOGLE_CLOUD_API_KEY GOOGLE_CLOUD_LOCATION
    GOOGLE_CLOUD_PROJECT
    COPILOT_GITHUB_TOKEN GH_TOKEN GITHUB_TOKEN HF_TOKEN
    CEREBRAS_API_KEY DEEPSEEK_API_KEY FIREWORKS_API_KEY GROQ_API_KEY KIMI_API_KEY MINIMAX_API_KEY MISTRAL_API_KEY
    MOONSHOT_API_KEY NVIDIA_API_KEY OPENCODE_API_KEY OPENROUTER_API_KEY TOGETHER_API_KEY XAI_API_KEY ZAI_API_KEY
"""
ENVIRONMENT = tuple(_VARIABLES.split())
"""Variables that agents need and Codex hides from its servers; it passes on the listed ones that are set."""

FOR_CODEX: Fields = {
    "startup_timeout_sec": 20,
    "tool_timeout_sec": 3600,
    # Without it, a session's first request does not wait for the tools.
    "required": True,
    # Without it, Codex asks about each call, or refuses it if no user can answer.
    "default_tools_approval_mode": "approve",
    # Without it, Codex starts the server, and so its agents, without keys and settings from variables.
    "env_vars": list(ENVIRONMENT),
}
"""Defaults beside the command; existing values are kept."""


class Change(Struct, frozen=True):
    """The result of editing a settings file."""

    path: str
    entry: Fields | None
    """The current entry; None if there is none."""
    changed: bool


class Client(Struct, frozen=True):
    """The settings file from which one client reads its servers."""

    path: str
    keys: tuple[str, ...]
    """The entry's path of keys."""
    entry: Fields
    """The entry to write."""
    is_json: bool
    of_project: bool
    next_step: str
    """When the client loads the server, and whether it asks before, for a person."""

    def install(self) -> Change:
        """Add or update subdeck's entry; a working entry stays as it is. Raises UsageError, OSError."""
        text, existing = self._read()
        entry = self._merged(existing)
        if entry == existing:
            return Change(self.path, entry, changed=False)
        if self.is_json:
            written = _json_member.put(text, self.keys, entry) if text.strip() else _new_json(self.keys, entry)
        else:
            changed = {
                name: entry[name] for name in self.entry if existing is None or existing.get(name) != entry[name]
            }
            written = _toml_table.put(text, self.keys, changed)
        self._write(text, written, entry)
        return Change(self.path, entry, changed=True)

    def uninstall(self) -> Change:
        """Remove subdeck's entry. Raises UsageError, OSError."""
        text, existing = self._read()
        if existing is None:
            return Change(self.path, None, changed=False)
        self._check_ours(existing)
        editor = _json_member if self.is_json else _toml_table
        self._write(text, editor.take(text, self.keys), None)
        return Change(self.path, None, changed=True)

    def _merged(self, existing: Fields | None) -> Fields:
        """Return the new entry; a command that starts subdeck by name is kept, with its options."""
        if existing is None:
            return self.entry
        self._check_ours(existing)
        command = existing.get("command")
        if isinstance(command, str) and not os.path.isabs(command):
            return self.entry | existing
        return self.entry | existing | {name: self.entry[name] for name in ("command", "args")}

    def _check_ours(self, existing: Fields) -> None:
        args = existing.get("args")
        words = [existing.get("command"), *(cast("list[object]", args) if isinstance(args, list) else ())]
        if words[-1:] != ["mcp"] or not any("subdeck" in str(word) for word in words):
            raise self._refusal(
                f"the entry {NAME} exists but does not start subdeck", "rename or remove it, then try again"
            )

    def _read(self) -> tuple[str, Fields | None]:
        """Return the file's text and subdeck's entry in it. Raises UsageError if the file cannot be edited."""
        directory = os.path.dirname(self.path)
        if self.of_project and os.path.islink(directory):
            raise self._refusal(f"{directory} is a link", "put a directory in its place, then try again")
        if not os.path.lexists(self.path):
            return "", None
        # Files of a checkout may not be links; a user may link the files of a home.
        if self.of_project and os.path.islink(self.path):
            raise self._refusal("it is a link", "put a file in its place, then try again")
        try:
            descriptor, status = open_regular(self.path, follow=True)
        except OSError as error:
            raise self._refusal(error.strerror or str(error), "move it out of the way, then try again") from error
        with open(descriptor, "rb") as file:
            raw = file.read()
        if not status.st_mode & stat.S_IWUSR:
            raise self._refusal("the file is not writable", "make it writable, then try again")
        try:
            text = raw.decode()
            return text, self._entry(text)
        except UNDECODABLE as error:
            problem = why(error) if self.is_json else f"invalid TOML ({error})"
            raise self._refusal(problem, "fix the file, then try again") from error

    def _entry(self, text: str) -> Fields | None:
        """Find subdeck's entry. Raises UsageError, or one of UNDECODABLE."""
        node: Any = self._document(text)
        for number, key in enumerate(self.keys):
            if not isinstance(node, dict):
                where = ".".join(self.keys[:number]) or "the whole"
                raise self._refusal(f"{where} is not an object", "fix the file, then try again")
            node = cast("Fields", node).get(key)
            if node is None:
                return None
        if not isinstance(node, dict):
            raise self._refusal(f"{'.'.join(self.keys)} is not an object", "fix the file, then try again")
        return cast("Fields", node)

    def _document(self, text: str) -> object:
        if not text.strip():
            return {}
        if self.is_json:
            return _json_member.read(text)
        import tomllib

        return tomllib.loads(text)

    def _write(self, before: str, after: str, entry: Fields | None) -> None:
        """Replace the file, after checking that only subdeck's entry changes."""
        try:
            is_right = self._without(after) == self._without(before) and self._entry(after) == entry
        except UNDECODABLE:
            is_right = False
        if not is_right:
            what = f"cannot edit the entry {NAME} in its present form"
            raise self._refusal(what, "change or remove it by hand")
        path = self.path if self.of_project else os.path.realpath(self.path)
        if content(path) != before.encode():
            raise self._refusal("the file was changed by another program", "try again")
        if not after.strip() and entry is None:
            os.unlink(path)
            return
        make_private_directory(os.path.dirname(path))
        write_whole(path, after.encode(), mode=0o644 if self.of_project else 0o600, durable=True)

    def _without(self, text: str) -> object:
        """Return a document without subdeck's entry, and without its table if that is then empty."""
        document: Any = self._document(text)
        servers = document.get(self.keys[0], {})
        other_servers = {name: server for name, server in servers.items() if name != NAME}
        other_fields = {name: value for name, value in document.items() if name != self.keys[0]}
        return other_fields | ({self.keys[0]: other_servers} if other_servers else {})

    def _refusal(self, what: str, hint: str) -> UsageError:
        return UsageError(what, where=self.path, hint=hint)


def client(name: str, *, project: str | None) -> Client:
    """Return a client's settings file: the user's own, or the one in a project's root."""
    program, *words = BY_NAME if project else (*own_command(), "mcp")
    return _CLIENTS[name]({"command": program, "args": words}, project)


def _claude(entry: Fields, project: str | None) -> Client:
    user = os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~"), ".claude.json")
    path = os.path.join(project, ".mcp.json") if project else user
    next_step = (
        "Claude Code asks once whether it may start the project's server. It starts the server "
        "by name: everyone who works on this project needs subdeck on PATH."
        if project
        else "Restart Claude Code to load it."
    )
    client_entry = {"type": "stdio", **entry}
    return Client(path, ("mcpServers", NAME), client_entry, is_json=True, of_project=bool(project), next_step=next_step)


def _codex(entry: Fields, project: str | None) -> Client:
    user = os.environ.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")
    path = os.path.join(os.path.join(project, ".codex") if project else user, "config.toml")
    client_entry = entry | FOR_CODEX
    if not project:  # a project's file is shared with others
        client_entry["env_vars"] = list(dict.fromkeys((*ENVIRONMENT, *_own_keys(path))))
    next_step = (
        "Codex loads it in projects that you trust. Its model can then start subagents without "
        "asking you. It starts the server by name: everyone who works on this project needs "
        "subdeck on PATH."
        if project
        else "Restart Codex to load it. Its model can then start subagents without asking you."
    )
    return Client(
        path, ("mcp_servers", NAME), client_entry, is_json=False, of_project=bool(project), next_step=next_step
    )


_CLIENTS = {CLAUDE: _claude, CODEX: _codex}
"""Each kind with `mcp_client` in the table of agent kinds: every client has another file, in another format."""


def _own_keys(path: str) -> list[str]:
    """Return the key variables set here, and the key variables of the providers in the user's Codex settings."""
    import tomllib

    names: set[object] = {name for name in os.environ if name.endswith("_API_KEY")}
    try:
        with open(open_regular(path, follow=True)[0], "rb") as file:
            providers = tomllib.loads(file.read().decode()).get("model_providers", {})
        names |= {provider["env_key"] for provider in providers.values() if "env_key" in provider}
    except (OSError, ValueError, AttributeError, TypeError):
        pass  # `install` reports the file's problem
    return sorted(name for name in names if isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name))


def _new_json(keys: tuple[str, ...], entry: Fields) -> str:
    servers, name = keys
    return json.dumps({servers: {name: entry}}, ensure_ascii=False, indent=2) + "\n"
