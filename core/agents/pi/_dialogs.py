"""Dialogs of pi extensions in rpc mode, as questions of the agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...run.events import Request
from ...run.model import RequestKind, Verdict
from ...text.plain import one_line
from .._diffs import diff_of_texts
from .._json_lines import decode, is_deep, items, mapping, shown_json, string
from ..question import Question

PERMISSION = "subdeck: may this tool be called?"
"""The title of the dialog from `ask.ts`, and from the offline agent."""

UNREADABLE = "subdeck cannot read the call: its arguments are nested too deeply"
"""Why an unreadable call is denied: rules only decide on readable calls."""

ALLOWED, DENIED = "allow", "deny"
"""The answers to that dialog; a colon and a reason may follow the second."""

_YES, _NO = "Yes", "No"
_CLOSED = {"cancelled": True}
"""Closes the dialog, if no answer fits."""
_REASON = 2000
"""Maximum characters of a denial's reason."""
_TITLES = {"bash": "wants to run a command", "edit": "wants to change a file", "write": "wants to write a file"}
_LOOKS_INTO = frozenset({"grep", "find", "ls"})
"""Tools that use the run's directory without a `path`, even with other arguments."""
_WITH_PATH = frozenset({"read", "grep", "find", "ls", "edit", "write"})
_SHOWN = {
    "bash": ("command",),
    "edit": ("path", "file_path", "edits", "oldText", "newText"),
    "write": ("path", "file_path", "content"),
    **dict.fromkeys(("read", "grep", "find", "ls"), ("path", "file_path")),
}
"""Arguments that a request shows in separate fields."""


def is_unreadable(fields: dict[str, Any]) -> bool:
    """Whether a dialog is about a call that cannot be parsed or displayed."""
    if fields.get("method") != "input" or fields.get("title") != PERMISSION:
        return False
    call = decode(string(fields.get("placeholder")).encode("utf-8", "replace"))
    return call is None or not string(call.get("tool")) or is_deep(call.get("args"))


def asked(fields: dict[str, Any]) -> Question | None:
    """Parse a dialog; None if it expects no answer, or a user could not give one."""
    own_id, title = string(fields.get("id")), string(fields.get("title"))
    match fields.get("method"):
        case "input" if title == PERMISSION:
            return _call(own_id, string(fields.get("placeholder")))
        case "select":
            choices = tuple(map(string, items(fields.get("options"))))
            return _choice(own_id, "has a question", title, choices, lambda chosen: {"value": chosen})
        case "confirm":
            text = "\n\n".join(filter(None, (title, string(fields.get("message")))))
            return _choice(
                own_id, "has a yes/no question", text, (_YES, _NO), lambda chosen: {"confirmed": chosen == _YES}
            )
        case "input":
            return _question(own_id, title, string(fields.get("placeholder")))
        case "editor":
            return _question(own_id, title, string(fields.get("prefill")))
        case _:
            return None


def _question(own_id: str, *texts: str) -> Question:
    text = "\n\n".join(filter(None, texts))
    request = Request(id=own_id, kind=RequestKind.QUESTION, title="has a question", text=text)
    return Question(request, _CLOSED, filled=lambda reply: {"value": reply})


def _choice(
    own_id: str, title: str, text: str, choices: tuple[str, ...], answer: Callable[[str], dict[str, Any]]
) -> Question:
    def filled(reply: str) -> dict[str, Any] | None:
        folded = reply.strip().casefold()
        chosen = next((choice for choice in choices if choice.strip().casefold() == folded), None)
        return None if chosen is None else answer(chosen)

    request = Request(id=own_id, kind=RequestKind.CHOICE, title=title, text=text, choices=choices)
    return Question(request, _CLOSED, filled=filled)


def _call(own_id: str, call_text: str) -> Question:
    return Question(
        _permission(own_id, call_text), denied={"value": DENIED}, allowed={"value": ALLOWED}, explained=denial
    )


def denial(reason: str) -> dict[str, Any]:
    """Deny a call with a reason."""
    word = one_line(reason, _REASON)
    return {"value": f"{DENIED}: {word}" if word else DENIED}


def _permission(own_id: str, call_text: str) -> Request:
    """Parse the call from `ask.ts`."""
    call = decode(call_text.encode("utf-8", "replace")) or {}
    name, args = string(call.get("tool")), mapping(call.get("args"))
    command = string(args.get("command")) if name == "bash" else ""
    path, file_path = string(args.get("path")), string(args.get("file_path"))
    paths = (
        tuple(filter(None, (path, file_path)))
        if path or name not in _LOOKS_INTO
        else (".", *filter(None, (file_path,)))
    )
    path = path or file_path
    return Request(
        id=own_id,
        kind=RequestKind.PERMISSION,
        title=_TITLES.get(name) or f"wants to use {name}",
        tool_name=name,
        text=_args(name, args),
        command=command,
        paths=(paths or (".",)) if name in _WITH_PATH else (),
        diff=_diff(name, path, args),
        tool_call_id=string(call.get("id")),
        usual=Verdict.ALLOW,
    )


def _diff(name: str, path: str, args: dict[str, Any]) -> str:
    if name == "write":
        return diff_of_texts([{"path": path, "oldText": "", "newText": string(args.get("content"))}])
    if name != "edit":
        return ""
    edits = [mapping(edit) for edit in items(args.get("edits"))] or [args]
    texts = [{name: string(edit.get(name)) for name in ("oldText", "newText")} for edit in edits]
    return diff_of_texts([{"path": path if not number else "", **text} for number, text in enumerate(texts)])


def _args(name: str, args: dict[str, Any]) -> str:
    """Return a call's other arguments, one per line."""
    shown = _SHOWN.get(name, ())
    twice = {"oldText", "newText"} if items(args.get("edits")) else {"edits"}
    pairs = (
        (key, value)
        for key, value in args.items()
        if key not in shown or key in twice or not isinstance(value, list if key == "edits" else str)
    )
    return "\n".join(f"{key}: {value if isinstance(value, str) else shown_json(value)}" for key, value in pairs)
