"""Permission requests of ACP agents, as subdeck requests; no input can make this raise."""

from __future__ import annotations

from typing import Any

from ...permissions.path_readings import start_of_glob
from ...run.events import Request
from ...run.model import RequestKind, Verdict
from .._diffs import diff_of_texts
from .._json_lines import items, mapping, shown_json, string
from ..question import fields_of
from ._stream import Call

HARMLESS = frozenset({"read", "search"})
"""Kinds of calls without changes: allowed unless a rule matches."""

_TOOLS = {
    **dict.fromkeys(("execute", "Bash"), "bash"),
    **dict.fromkeys(("edit", "delete", "move", "Edit", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("Write",), "write"),
    **dict.fromkeys(("read", "Read"), "read"),
    **dict.fromkeys(("search", "Grep"), "grep"),
    **dict.fromkeys(("Glob",), "find"),
    **dict.fromkeys(("LS",), "ls"),
}
"""The protocol's kinds and Claude Code's names, mapped to subdeck's tool names."""
_TITLES = {
    "bash": "wants to run a command",
    "edit": "wants to change a file",
    "write": "wants to write a file",
    "read": "wants to read a file",
}
_PATHS = ("file_path", "notebook_path", "path", "filePath", "abs_path")
_USUAL = frozenset({"allow", "allow once", "yes"})
"""Lowercase names of the options that allow a call once."""
_SHELLS = ("sh", "bash", "zsh")


def permission(id_: str, call: Call, fields: dict[str, Any], option: dict[str, Any]) -> Request:
    """Return the request for a call; `fields` are the question's own, `option` is the option that allows it."""
    args = call.args
    name = _TOOLS.get(call.name, call.name)
    command = _command(args.get("command")) if name == "bash" else ""
    named = [string(args.get(key)) for key in _PATHS]
    located = [string(mapping(location).get("path")) for location in items(fields.get("locations"))]
    paths = [*named, *located, *(edit["path"] for edit in call.edits), *_searched(name, args)]
    diff = diff_of_texts(call.edits)
    further = _further(call, command)
    texts = [*_content_texts(fields), shown_json(further) if further else ""]
    if name == "bash" and any(located):
        texts.append(f"locations: {', '.join(filter(None, located))}")
    return Request(
        id=id_,
        kind=RequestKind.PERMISSION,
        title=_TITLES.get(name) or f"wants to use {name}",
        tool_name=name,
        text="\n\n".join(filter(str.strip, (call.title if call.title != command else "", *texts, _choosing(option)))),
        command=command,
        cwd=string(args.get("cwd")) or string(args.get("workdir")),
        paths=() if name == "bash" else tuple(dict.fromkeys(filter(None, paths))),
        diff=diff,
        tool_call_id=string(fields.get("toolCallId")),
        usual=Verdict.ALLOW if string(fields.get("kind")) in HARMLESS else None,
    )


def _content_texts(fields: dict[str, Any]) -> list[str]:
    """Return a question's text blocks as they are, and other blocks as JSON, without the diff."""
    blocks = [mapping(block.get("content")) for block in _blocks(fields) if block.get("type") == "content"]
    others = [block for block in _blocks(fields) if block.get("type") not in ("content", "diff")]
    return [string(block.get("text")) or shown_json(block) for block in (*blocks, *others) if block]


def _blocks(fields: dict[str, Any]) -> list[dict[str, Any]]:
    return [mapping(block) for block in items(fields.get("content"))]


def _choosing(option: dict[str, Any]) -> str:
    """Return a note on the option that would allow the call, if its name is unusual."""
    name = string(option.get("name"))
    return "" if name.casefold() in ("", *_USUAL) else f"to allow it chooses the option {name}"


def _searched(name: str, args: dict[str, Any]) -> tuple[str, ...]:
    """Return the start of a file name pattern that points outside the searched directory."""
    start = start_of_glob(string(args.get("pattern"))) if name in ("grep", "find") else ""
    return (start,) if start else ()


def form(id_: str, params: dict[str, Any], schema: dict[str, Any]) -> Request | None:
    """Return the request for a form; None if it has no fields. One field makes a question."""
    fields = fields_of(schema)
    if not fields:
        return None
    only, text = fields[0], string(params.get("message"))
    call = string(params.get("toolCallId"))
    if len(fields) > 1:
        return Request(id=id_, kind=RequestKind.FORM, title="has a form", text=text, fields=fields, tool_call_id=call)
    asked = [part for part in (text, only.title, only.text) if part.strip()]
    return Request(
        id=id_,
        kind=RequestKind.QUESTION,
        title="has a question",
        text="\n".join(dict.fromkeys(asked)),
        choices=only.choices,
        tool_call_id=call,
    )


def _further(call: Call, command: str) -> dict[str, Any]:
    """Return the arguments not shown elsewhere, so that the user sees everything they allow."""
    shown = {"cwd", "workdir", *_PATHS} if command or call.edits else set[str]()
    texts = {text for edit in call.edits for text in edit.values()}
    return {
        name: value
        for name, value in call.args.items()
        if not (name in shown and isinstance(value, str))
        and not (name == "command" and command and _is_words(value))
        and not (isinstance(value, str) and value in texts)
    }


def _is_words(command: object) -> bool:
    return isinstance(command, str) or all(isinstance(word, str) for word in items(command))


def _command(command: object) -> str:
    """Return a command as the model wrote it, without its shell."""
    if isinstance(command, str):
        return command
    words = [word for word in items(command) if isinstance(word, str)]
    match words:
        case [shell, "-c" | "-lc", whole] if shell.rpartition("/")[2] in _SHELLS:
            return whole
        case _:
            import shlex  # a wrapper starts its agent before it needs this

            return shlex.join(words)
