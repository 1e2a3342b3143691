"""Codex's agent files: TOML with instructions for a subagent, and any Codex settings."""

from __future__ import annotations

import re
import tomllib
from typing import Any, cast

from ...agents.codex.permissions import READERS, TOOL_NAMES, WEB_SEARCH
from ...config.values import Verbatim
from ...config.yaml_tree import Fields, Items, Node, Text
from ...errors import ContentError
from ...models.catalog import INHERIT
from ...text.plain import one_line
from ..file import Preset
from .form import AgentFile, Form

READ_ONLY, WORKSPACE_WRITE = "read-only", "workspace-write"

_IN_YOURS = "set it in your own Codex settings, or remove the line"

_RESTRICTING = {
    "model_provider": "your own Codex settings determine the provider",
    "profile": "your own Codex settings determine the profile",
    "permissions": "only sandbox_mode can set permissions for a run",
    "default_permissions": "only sandbox_mode can set permissions for a run",
    "shell_environment_policy": "your own Codex settings determine the variables that commands get",
    "forced_login_method": "your own Codex settings determine the login",
}
"""Restrictions that cannot be enforced: the file is refused."""

_NOT_PASSED_ON = {
    "mcp_servers": "agent files cannot start servers",
    "hooks": "agent files cannot start programs, so hooks do not check or block anything",
    "notify": "agent files cannot start programs",
    "skills": "the agent finds skills like any Codex session",
}

_SILENTLY = ("nickname_candidates",)
"""Codex's display of agents; not used by runs."""


class CodexForm:
    def parse(self, text: str, path: str, agent: str) -> Preset | None:
        file = AgentFile(_fields(text), path)
        for key, why in _RESTRICTING.items():
            if file.node(key) is not None:
                file.refuse(key, why, _IN_YOURS)
        web_search = _web_search(file)
        tools = _tools(file, web_search)
        _check_approvals(file)
        for key, why in _NOT_PASSED_ON.items():
            file.leave_out(key, why)
        return file.preset(
            "codex",
            file.value("developer_instructions", Verbatim) or "",
            silently=_SILENTLY,
            agent=agent,
            model=file.value("model") or INHERIT,
            thinking=file.thinking("model_reasoning_effort", {"none": "off"}),
            tools=tools,
            denied_tools=None if tools is not None or web_search else (WEB_SEARCH,),
            context_files=False if file.value("project_doc_max_bytes") == "0" else None,
        )

    def marks(self, fields: Fields) -> bool:
        return "developer_instructions" in fields.pairs


def _tools(file: AgentFile, web_search: bool) -> tuple[str, ...] | None:
    """Return the tools that give Codex the sandbox in the file; None for the user's sandbox."""
    mode = file.value("sandbox_mode")
    web = {WEB_SEARCH} if web_search else set[str]()
    if mode in (READ_ONLY, WORKSPACE_WRITE):
        _check_workspace(file)
        names = READERS | web if mode == READ_ONLY else {*TOOL_NAMES} - {WEB_SEARCH} | web
        return tuple(name for name in TOOL_NAMES if name in names)
    if mode is not None:
        file.warnings.append(f'sandbox_mode: "{one_line(mode, 40)}" is ignored: your own Codex settings apply')
    file.leave_out("sandbox_workspace_write", "your own Codex settings apply")
    return None


def _check_workspace(file: AgentFile) -> None:
    """Raise ContentError if the sandbox forbids more than subdeck can."""
    node = file.node("sandbox_workspace_write")
    for key, value in node.pairs.items() if isinstance(node, Fields) else ():
        if key.startswith("exclude_") and not (isinstance(value, Text) and value.value == "false"):
            file.refuse("sandbox_workspace_write", f"{one_line(key, 40)} cannot be enforced", _IN_YOURS)
    file.leave_out(
        "sandbox_workspace_write",
        "the agent can write in the project and temporary directories, without network access",
    )


def _web_search(file: AgentFile) -> bool:
    """Return whether it may search the web. Raises ContentError for other tools or features that it must not use."""
    mode = file.value("web_search")
    is_allowed = mode != "disabled"
    if mode not in (None, "disabled"):
        file.leave_out("web_search", "your own Codex settings determine web search")
    for key in ("tools", "features"):
        node = file.node(key)
        for name, value in node.pairs.items() if isinstance(node, Fields) else ():
            if isinstance(value, Text) and value.value != "false":
                continue
            if key == "tools" and name == WEB_SEARCH and isinstance(value, Text):
                is_allowed = False
            elif isinstance(value, Text):
                file.refuse(key, f"{one_line(name, 40)} = false cannot be enforced", _IN_YOURS)
        file.leave_out(key, "your own Codex settings determine the providers")
    return is_allowed


def _check_approvals(file: AgentFile) -> None:
    """Raise ContentError for approvals that restrict the agent, because they would stay unanswered."""
    node = file.node("approval_policy")
    if node is not None and not (isinstance(node, Text) and node.value in ("never", "on-request", "on-failure")):
        hint = f'write sandbox_mode = "{READ_ONLY}", or {_IN_YOURS}'
        file.refuse("approval_policy", "asking before each command is not supported here", hint)
    file.leave_out("approval_policy", "permission requests are not supported here")


def _fields(text: str) -> Fields:
    """Parse TOML into fields. Raises ContentError."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ContentError("the file is nested too deeply") from None
    except ValueError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise ContentError(f"invalid TOML: {error}", line=int(line[1]) if line else None) from error
    return Fields({key: _node(value, _line(key, text)) for key, value in table.items()}, 1)


def _line(key: str, text: str) -> int:
    """Return the line of an outermost key; 1 if not found."""
    match = re.search(rf"(?m)^[ \t]*\[*[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*[=.\]]", text)
    return text.count("\n", 0, match.start()) + 1 if match else 1


def _node(value: Any, line: int) -> Node:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return Fields({key: _node(child, line) for key, child in pairs.items()}, line)
    if isinstance(value, list):
        return Items(tuple(_node(item, line) for item in cast("list[Any]", value)), line)
    if isinstance(value, bool):
        return Text(str(value).lower(), line)
    if "\0" in str(value):
        raise ContentError("a value contains a NUL character", line=line, hint="remove that character")
    return Text(str(value), line, quoted=isinstance(value, str))


FORM: Form = CodexForm()
