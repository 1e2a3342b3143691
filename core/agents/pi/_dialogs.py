"""The dialogs that extensions of pi open in its rpc mode, as requests of the child, and their answers."""

from __future__ import annotations

from typing import Any

from ...run.events import Request
from ...run.model import RequestKind, Verdict
from ...text.plain import one_line
from .._diffs import diff_of_texts
from .._json_lines import decode, is_deep, items, mapping, shown_json, string

PERMISSION = "subdeck: may this tool be called?"
"""The title of the dialog that `ask.ts` opens; the offline agent opens the same."""

UNREADABLE = "subdeck cannot read the call: its arguments are nested too deeply"
"""Why such a call is denied: rules decide on what they can read."""

ALLOWED, DENIED = "allow", "deny"
"""What that dialog is answered with; a reason may follow the second, after a colon."""

_YES, _NO = "Yes", "No"
_CONFIRM = "has a yes/no question"
_REASON = 2000
"""Characters of a reason why not."""
_TITLES = {"bash": "wants to run a command", "edit": "wants to change a file", "write": "wants to write a file"}
_LOOKS_INTO = frozenset({"grep", "find", "ls"})
"""Those that take the directory of the run without a `path`, whatever else they are called with."""
_WITH_PATH = frozenset({"read", "grep", "find", "ls", "edit", "write"})
_SHOWN = {
    "bash": ("command",),
    "edit": ("path", "file_path", "edits", "oldText", "newText"),
    "write": ("path", "file_path", "content"),
    **dict.fromkeys(("read", "grep", "find", "ls"), ("path", "file_path")),
}
"""The arguments that a request shows in a place of their own."""


def is_unreadable(fields: dict[str, Any]) -> bool:
    """Tell whether a dialog asks about a call that cannot be read, or not be shown to anybody."""
    if fields.get("method") != "input" or fields.get("title") != PERMISSION:
        return False
    call = decode(string(fields.get("placeholder")).encode("utf-8", "replace"))
    return call is None or not string(call.get("tool")) or is_deep(call.get("args"))


def request_of(fields: dict[str, Any]) -> Request | None:
    """Return what is asked; None where no answer is waited for, or nobody would know what to say."""
    own_id, title = string(fields.get("id")), string(fields.get("title"))
    match fields.get("method"):
        case "input" if title == PERMISSION:
            return _permission(own_id, string(fields.get("placeholder")))
        case "select":
            choices = tuple(map(string, items(fields.get("options"))))
            return Request(id=own_id, kind=RequestKind.CHOICE, title="has a question", text=title, choices=choices)
        case "confirm":
            text = "\n\n".join(filter(None, (title, string(fields.get("message")))))
            return Request(id=own_id, kind=RequestKind.CHOICE, title=_CONFIRM, text=text, choices=(_YES, _NO))
        case "input":
            text = "\n\n".join(filter(None, (title, string(fields.get("placeholder")))))
            return Request(id=own_id, kind=RequestKind.QUESTION, title="has a question", text=text)
        case "editor":
            text = "\n\n".join(filter(None, (title, string(fields.get("prefill")))))
            return Request(id=own_id, kind=RequestKind.QUESTION, title="has a question", text=text)
        case _:
            return None


def answer_to(request: Request, verdict: Verdict, text: str) -> dict[str, Any]:
    """Return what is answered; where a reply does not fit, that the dialog was closed."""
    answer: dict[str, Any] = {"type": "extension_ui_response", "id": request.id}
    if request.kind is RequestKind.PERMISSION:
        is_allowed = verdict in (Verdict.ALLOW, Verdict.ALLOW_RUN)
        word = one_line(text, _REASON)
        return answer | {"value": ALLOWED if is_allowed else f"{DENIED}: {word}" if word else DENIED}
    if verdict is not Verdict.REPLY:
        return answer | {"cancelled": True}
    if request.kind is RequestKind.QUESTION:
        return answer | {"value": text}
    wanted = text.strip().casefold()
    chosen = next((choice for choice in request.choices if choice.strip().casefold() == wanted), None)
    if chosen is None:
        return answer | {"cancelled": True}
    return answer | ({"confirmed": chosen == _YES} if request.title == _CONFIRM else {"value": chosen})


def _permission(own_id: str, about: str) -> Request:
    """Read the call that `ask.ts` tells of."""
    call = decode(about.encode("utf-8", "replace")) or {}
    name, args = string(call.get("tool")), mapping(call.get("args"))
    command = string(args.get("command")) if name == "bash" else ""
    path, other = string(args.get("path")), string(args.get("file_path"))
    paths = tuple(filter(None, (path, other))) if path or name not in _LOOKS_INTO else (".", *filter(None, (other,)))
    path = path or other
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
    """Return what else a call says, a line for each argument."""
    known = _SHOWN.get(name, ())
    twice = {"oldText", "newText"} if items(args.get("edits")) else {"edits"}
    rest = (
        (key, value)
        for key, value in args.items()
        if key not in known or key in twice or not isinstance(value, list if key == "edits" else str)
    )
    return "\n".join(f"{key}: {value if isinstance(value, str) else shown_json(value)}" for key, value in rest)
