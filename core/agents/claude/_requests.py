"""Claude Code's questions, as subdeck requests, and the answers."""

from __future__ import annotations

import os
from typing import Any

from msgspec.structs import replace

from ...permissions.path_readings import start_of_glob
from ...run.events import Field, Request
from ...run.model import RequestKind
from .._diffs import diff_of_texts
from .._json_lines import is_deep, items, mapping, shown_json, string
from ..question import Question, content_of, fields_of, filled_in, joined
from ._stream import own_name

_DENIED = {"behavior": "deny", "message": "This call was denied."}
_DECLINED = {"action": "decline"}
BY_RULE = "a rule of this run"
"""Its reason for asking because of subdeck's hook."""

_TITLES = {
    **dict.fromkeys(("bash", "Monitor"), "wants to run a command"),
    "edit": "wants to change a file",
    "write": "wants to write a file",
    "read": "wants to read a file",
    "grep": "wants to search files",
    "find": "wants to find files",
    "NotebookEdit": "wants to change a notebook",
    "WebFetch": "wants to fetch a page",
    "WebSearch": "wants to search the web",
    "ExitPlanMode": "wants to carry out its plan",
}
_PATHS = ("file_path", "notebook_path", "path")
_TEXTS = ("plan", "pattern", "url", "query", "description", "prompt")
_EDITORS = {"edit": ("old_string", "new_string"), "write": ("content",), "NotebookEdit": ("new_source",)}
"""Tools whose calls are shown as a diff, and the arguments shown in it; the last one is the new text."""
_RUNNERS = ("bash", "Monitor")
"""Tools that run a shell command."""
_FREE = "dangerouslyDisableSandbox"


def asked(id_: str, wish: dict[str, Any], cwd: str = "") -> Question | None:
    """Parse a control request; None if it is not a question for a user. `cwd` is set if it differs from the run's
    directory.
    """
    if is_deep(wish):
        return None
    match wish.get("subtype"):
        case "can_use_tool":
            return _call(id_, wish, cwd)
        case "elicitation":
            return _of_server(id_, wish)
        case _:
            return None


def _call(id_: str, wish: dict[str, Any], cwd: str) -> Question:
    tool, call_id = string(wish.get("tool_name")), string(wish.get("tool_use_id"))
    arguments = mapping(wish.get("input"))
    questions = [mapping(each) for each in items(arguments.get("questions"))]
    if tool == "AskUserQuestion" and questions:
        return _questions(id_, call_id, arguments, questions)
    request, reason = call_of(id_, call_id, tool, arguments, cwd), string(wish.get("decision_reason"))
    text, diff = joined(request.text, reason if reason != BY_RULE else ""), _diff(request, arguments)
    return Question(replace(request, text=text, diff=diff), _DENIED, _leave(arguments), explained=_explained)


def _explained(reason: str) -> dict[str, Any]:
    return {**_DENIED, "message": reason}


def _leave(arguments: dict[str, Any]) -> dict[str, Any]:
    """Allow a call with these arguments."""
    return {"behavior": "allow", "updatedInput": arguments}


# --- permission ---


def call_of(id_: str, call_id: str, name: str, arguments: dict[str, Any], cwd: str = "") -> Request:
    """Return a call of a tool, by Claude Code's name, as a request without its diff."""
    tool = own_name(name)
    command = string(arguments.get("command")) if tool in _RUNNERS else ""
    # A rule for a command does not allow it outside a sandbox.
    is_free = bool(command) and arguments.get(_FREE) is True
    texts = [string(arguments.get(name)) for name in _TEXTS]
    return Request(
        id=id_,
        kind=RequestKind.PERMISSION,
        title=_TITLES.get(tool) or f"wants to use {tool or 'a tool'}",
        tool_name=tool,
        text=joined(command if is_free else "", *texts, _further(tool, arguments)),
        command="" if is_free else command,
        cwd=cwd,
        paths=tuple(path for name in _PATHS if (path := string(arguments.get(name)))) + _searched(tool, arguments),
        tool_call_id=call_id,
    )


def _searched(tool: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return the start of a file name pattern that points outside the searched directory."""
    start = start_of_glob(string(arguments.get("pattern"))) if tool == "find" else ""
    return (os.path.join(string(arguments.get("path")), start),) if start else ()


def _further(tool: str, arguments: dict[str, Any]) -> str:
    """Return the arguments not shown elsewhere, so that the user sees everything they allow."""
    edits = _EDITORS.get(tool, ()) if any(string(arguments.get(name)) for name in _PATHS) else ()
    shown = (*_PATHS, *_TEXTS, *edits, *(("command",) if tool in _RUNNERS else ()))
    further = {
        name: value
        for name, value in arguments.items()
        if value is not None and value is not False and not (isinstance(value, str) and name in shown)
    }
    return shown_json(further) if further else ""


def _diff(request: Request, arguments: dict[str, Any]) -> str:
    """Return an edit's diff; for a written file, the whole new text."""
    names = _EDITORS.get(request.tool_name)
    if names is None or not request.paths:
        return ""
    old, new = string(arguments.get("old_string")), string(arguments.get(names[-1]))
    return diff_of_texts([{"path": request.paths[0], "old_text": old if len(names) > 1 else "", "new_text": new}])


# --- questions ---


def _questions(id_: str, call_id: str, arguments: dict[str, Any], questions: list[dict[str, Any]]) -> Question:
    """Parse questions; each has choices, and also accepts any other answer."""
    headers = [string(question.get("header")) for question in questions]
    is_named = all(headers) and len(set(headers)) == len(headers)
    names = headers if is_named else [str(number) for number in range(1, len(questions) + 1)]
    fields = tuple(map(_field, names, questions))
    by_name = {field.name: string(question.get("question")) for field, question in zip(fields, questions, strict=True)}

    def filled(text: str) -> dict[str, Any] | None:
        values = {fields[0].name: text.strip()} if len(fields) == 1 else filled_in(text, fields)
        answers = {by_name[name]: value for name, value in values.items() if value}
        return _leave({**arguments, "answers": answers}) if answers else None

    only = fields[0] if len(fields) == 1 else None
    request = Request(
        id=id_,
        kind=RequestKind.QUESTION if only else RequestKind.FORM,
        title="has a question" if only else f"has {len(fields)} questions",
        text=only.text if only else "",
        choices=only.choices if only else (),
        fields=() if only else fields,
        tool_call_id=call_id,
    )
    return Question(request, _DENIED, filled=filled, explained=_explained)


def _field(name: str, question: dict[str, Any]) -> Field:
    labels = [string(mapping(option).get("label")) for option in items(question.get("options"))]
    return Field(
        name=name,
        title=string(question.get("header")),
        text=joined(string(question.get("question")), _described(question)),
        choices=tuple(labels),
        required=True,
    )


def _described(question: dict[str, Any]) -> str:
    """Return the descriptions of a question's choices."""
    options = [mapping(option) for option in items(question.get("options"))]
    pairs = [(string(option.get("label")), string(option.get("description"))) for option in options]
    return "\n".join(f"{label}: {meaning}" for label, meaning in pairs if label and meaning)


# --- requests of MCP servers ---


def _of_server(id_: str, wish: dict[str, Any]) -> Question:
    """Parse a server's request: a form, or permission to open a page."""
    server, schema = string(wish.get("mcp_server_name")), mapping(wish.get("requested_schema"))
    fields = () if wish.get("mode") == "url" else fields_of(schema)

    def filled(text: str) -> dict[str, Any] | None:
        content = content_of(text, schema)
        return {"action": "accept", "content": content} if content else None

    request = Request(
        id=id_,
        kind=RequestKind.FORM if fields else RequestKind.PERMISSION,
        title=f"the server {server} has a question",
        text=joined(string(wish.get("message")), string(wish.get("url"))),
        fields=fields,
    )
    if fields:
        return Question(request, _DECLINED, filled=filled)
    return Question(request, _DECLINED, {"action": "accept", "content": {}})
