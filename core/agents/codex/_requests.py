"""Codex's questions, as subdeck requests, and the answers."""

from __future__ import annotations

from typing import Any

from ...run.events import Field, Request
from ...run.model import RequestKind
from ...text.visible import visible_line, visible_name
from .._json_lines import is_deep, items, mapping, shown_json, string
from ..question import Question, content_of, fields_of, filled_in, joined
from ._items import changed, command_of

_TITLE = 200


def subject(request: Request) -> str:
    """Return a request's subject in one line."""
    return visible_line(request.command or ", ".join(request.paths) or request.text or request.title, _TITLE)


def asked(id_: str, method: str, params: dict[str, Any], change: dict[str, Any]) -> Question | None:
    """Parse a request of Codex; None if it is not a question for a user. `change` is the edit's item, if any."""
    if is_deep(params):
        return None
    match method:
        case "item/commandExecution/requestApproval":
            return _command(id_, params)
        case "item/fileChange/requestApproval":
            return _file_change(id_, params, change)
        case "item/permissions/requestApproval":
            return _permissions(id_, params)
        case "item/tool/requestUserInput":
            return _questions(id_, params)
        case "mcpServer/elicitation/request":
            return _of_server(id_, params)
        case _:
            return None


def _command(id_: str, params: dict[str, Any]) -> Question:
    command = command_of(params)
    host = string(mapping(params.get("networkApprovalContext")).get("host"))
    if host:
        tool, title = "network", f"wants to reach {host}"
    elif params.get("kind") in ("command", None):
        tool, title = "bash", "wants to run a command"
    else:
        tool, title = "write_stdin", "wants to write to a running command"
    further = mapping(params.get("additionalPermissions"))
    request = Request(
        id=id_,
        kind=RequestKind.PERMISSION,
        title=title,
        tool_name=tool,
        text=joined(string(params.get("reason")), command if further else "", shown_json(further) if further else ""),
        # A rule for a command grants no further permissions, so the user is asked.
        command="" if further else command,
        cwd=string(params.get("cwd")),
        tool_call_id=string(params.get("itemId")),
    )
    return _decided(request)


def _file_change(id_: str, params: dict[str, Any], change: dict[str, Any]) -> Question:
    changes = [mapping(each) for each in items(changed(change).get("changes"))]
    root = string(params.get("grantRoot"))
    touched = [path for each in changes for name in ("path", "to") if (path := string(each.get(name)))]
    paths = [*touched, *([root] if root else [])]
    request = Request(
        id=id_,
        kind=RequestKind.PERMISSION,
        title="wants to change files" if len(paths) != 1 else "wants to change a file",
        tool_name="edit",
        text=joined(string(params.get("reason")), f"for everything below {root}" if root else ""),
        paths=tuple(paths),
        diff="\n".join(map(_diff, changes)),
        tool_call_id=string(params.get("itemId")),
    )
    return _decided(request)


def _decided(request: Request) -> Question:
    return Question(request, denied={"decision": "decline"}, allowed={"decision": "accept"})


def _permissions(id_: str, params: dict[str, Any]) -> Question:
    permissions = mapping(params.get("permissions"))
    files = mapping(permissions.get("fileSystem"))
    entries = [mapping(mapping(entry).get("path")) for entry in items(files.get("entries"))]
    paths = [string(entry.get("path")) or string(entry.get("pattern")) for entry in entries]
    paths += [string(path) for name in ("read", "write") for path in items(files.get(name))]
    request = Request(
        id=id_,
        kind=RequestKind.PERMISSION,
        title="wants further permissions",
        text=joined(string(params.get("reason")), shown_json(permissions)),
        cwd=string(params.get("cwd")),
        paths=tuple(filter(None, paths)),
        tool_call_id=string(params.get("itemId")),
    )
    return Question(request, denied={"permissions": {}}, allowed={"permissions": permissions, "scope": "turn"})


# --- questions ---


def _questions(id_: str, params: dict[str, Any]) -> Question | None:
    """Parse questions; None if one asks for a secret, which would be logged."""
    questions = [mapping(each) for each in items(params.get("questions"))]
    if not questions or any(each.get("isSecret") is True for each in questions):
        return None
    fields = tuple(map(_question_field, questions))

    def filled(text: str) -> dict[str, Any] | None:
        values = {fields[0].name: text} if len(fields) == 1 else filled_in(text, fields)
        answers = {name: {"answers": [value]} for name, value in values.items()}
        return {"answers": answers} if answers else None

    first, only = fields[0], len(fields) == 1
    kind = RequestKind.FORM
    if only:
        is_closed = first.choices and questions[0].get("isOther") is not True
        kind = RequestKind.CHOICE if is_closed else RequestKind.QUESTION
    request = Request(
        id=id_,
        kind=kind,
        title="has a question" if only else f"has {len(fields)} questions",
        text=first.text if only else "",
        choices=first.choices if only else (),
        fields=() if only else fields,
        tool_call_id=string(params.get("itemId")),
    )
    return Question(request, denied={"answers": {}}, filled=filled)


def _question_field(question: dict[str, Any]) -> Field:
    labels = [string(mapping(option).get("label")) for option in items(question.get("options"))]
    return Field(
        name=string(question.get("id")),
        title=string(question.get("header")),
        text=joined(string(question.get("question")), _described(question)),
        choices=tuple(labels),
        required=True,
    )


def _described(question: dict[str, Any]) -> str:
    """Return the descriptions of a question's choices."""
    options = [mapping(option) for option in items(question.get("options"))]
    lines = [
        f"{string(option.get('label'))}: {description}" for option in options if (description := _description(option))
    ]
    return "\n".join(lines)


def _description(fields: dict[str, Any]) -> str:
    return string(fields.get("description"))


# --- requests of MCP servers ---


def _of_server(id_: str, params: dict[str, Any]) -> Question | None:
    """Parse a request of an MCP server, or of Codex before a call to one; None for an identity check."""
    mode = params.get("mode")
    if mode == "url":
        return _page(id_, params)
    if mode not in ("form", "openai/form", "openaiForm", None):
        return None
    schema = mapping(params.get("requestedSchema"))
    fields = fields_of(schema)
    if not fields:
        return _call(id_, params)

    def filled(text: str) -> dict[str, Any] | None:
        content = content_of(text, schema)
        return {"action": "accept", "content": content} if content else None

    request = Request(
        id=id_,
        kind=RequestKind.FORM,
        title=f"the server {string(params.get('serverName'))} has a question",
        text=string(params.get("message")),
        fields=fields,
    )
    return Question(request, denied={"action": "decline"}, filled=filled)


def _call(id_: str, params: dict[str, Any]) -> Question:
    """Parse a permission request for a server's tool, which is a form without fields."""
    meta = mapping(params.get("_meta"))
    server = string(params.get("serverName"))
    arguments = mapping(meta.get("tool_params"))
    request = Request(
        id=id_,
        kind=RequestKind.PERMISSION,
        title=f"wants to use the server {server}",
        tool_name=f"mcp__{server}",
        text=joined(string(params.get("message")), shown_json(arguments) if arguments else ""),
    )
    return Question(request, denied={"action": "decline"}, allowed={"action": "accept", "content": {}})


def _page(id_: str, params: dict[str, Any]) -> Question:
    request = Request(
        id=id_,
        kind=RequestKind.PERMISSION,
        title=f"the server {string(params.get('serverName'))} wants you to visit a page",
        text=joined(string(params.get("message")), string(params.get("url"))),
    )
    return Question(request, denied={"action": "decline"}, allowed={"action": "accept"})


# --- texts ---


def _diff(change: dict[str, Any]) -> str:
    """Return a change as diff lines; Codex gives the whole text of added and deleted files."""
    path, text = string(change.get("path")), string(change.get("diff"))
    sign = {"add": "+", "delete": "-"}.get(string(change.get("kind")))
    if sign is None:
        return f"+++ {visible_name(path)}\n{text}"
    lines = text.removesuffix("\n").split("\n") if text else []
    sides = f"-0,0 +1,{len(lines)}" if sign == "+" else f"-1,{len(lines)} +0,0"
    return "\n".join((f"+++ {visible_name(path)}", f"@@ {sides} @@", *(sign + line for line in lines)))
