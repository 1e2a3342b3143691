"""What Claude Code asks a person, as requests of ours, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...run.events import CONTENT_LIMIT, CUT, Field, Request
from ...run.model import RequestKind, Verdict
from ...text.plain import one_line
from ..diffs import diff_of_texts
from ..forms import filled_in
from ..json_lines import items, mapping, string
from .stream import own_name

_MOST = 100
"""Questions, or choices of one of them, that are kept."""
_TITLE = 200
_DENIED = "This call was denied."
BY_RULE = "a rule of this run"
"""Why it asks where a hook of ours had it do so."""

_TITLES = {
    "bash": "wants to run a command",
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
_NEW_TEXTS = ("new_string", "content", "new_source")
_TEXTS = ("plan", "pattern", "url", "query")
_REASONS = ("description", "prompt")


class Asked(Struct, frozen=True):
    """One thing that Claude Code asks, and how that is answered."""

    request: Request
    arguments: dict[str, Any]
    """Those of the call, which an answer repeats."""
    answers: Callable[[str], dict[str, str]] | None = None
    """Makes answers of a reply, by their questions; none of one that does not fit. None where leave is asked for."""

    def response(self, verdict: Verdict, text: str) -> dict[str, Any]:
        """Return what the program is answered; what does not fit is denied."""
        if self.answers is None and verdict in (Verdict.ALLOW, Verdict.ALLOW_RUN):
            return {"behavior": "allow", "updatedInput": self.arguments}
        if self.answers and verdict is Verdict.REPLY and (answers := self.answers(text)):
            return {"behavior": "allow", "updatedInput": {**self.arguments, "answers": answers}}
        return {"behavior": "deny", "message": text.strip() or _DENIED}


def asked(id_: str, wish: dict[str, Any], cwd: str = "") -> Asked | None:
    """Read a control request; None for one that no person is asked. `cwd` is where that is not the run's directory."""
    if wish.get("subtype") != "can_use_tool":
        return None
    tool, call_id = string(wish.get("tool_name")), string(wish.get("tool_use_id"))
    arguments = mapping(wish.get("input"))
    questions = [mapping(each) for each in items(arguments.get("questions"))][:_MOST]
    if tool == "AskUserQuestion" and questions:
        return _questions(id_, call_id, arguments, questions)
    request, reason = call_of(id_, call_id, tool, arguments, cwd), string(wish.get("decision_reason"))
    text, diff = _joined(request.text, reason if reason != BY_RULE else ""), _diff(request.paths, arguments)
    return Asked(replace(request, text=text, diff=diff), arguments)


# --- leave ---


def call_of(id_: str, call_id: str, name: str, arguments: dict[str, Any], cwd: str = "") -> Request:
    """Return a call of a tool, by Claude Code's name, as a request; without the change that it would make."""
    tool = own_name(name)
    command = string(arguments.get("command")) if tool == "bash" else ""
    paths = tuple(path for name in _PATHS if (path := string(arguments.get(name))))
    said = [string(arguments.get(name)) for name in _TEXTS]
    if not (command or paths or any(said)):
        said = [msgspec.json.encode(arguments).decode()] if arguments else []
    return Request(
        id=id_,
        kind=RequestKind.PERMISSION,
        title=one_line(_TITLES.get(tool) or f"wants to use {tool or 'a tool'}", _TITLE),
        tool_name=one_line(tool, _TITLE),
        text=_joined(*said, *(string(arguments.get(name)) for name in _REASONS)),
        command=_kept(command),
        cwd=cwd,
        paths=paths,
        tool_call_id=call_id,
    )


def _diff(paths: tuple[str, ...], arguments: dict[str, Any]) -> str:
    """Return what an edit would change; of a file that is written the whole new text."""
    new = next((text for name in _NEW_TEXTS if isinstance(text := arguments.get(name), str)), None)
    if not paths or new is None:
        return ""
    return diff_of_texts([{"path": paths[0], "old_text": string(arguments.get("old_string")), "new_text": new}])


# --- questions ---


def _questions(id_: str, call_id: str, arguments: dict[str, Any], questions: list[dict[str, Any]]) -> Asked:
    """Take questions, each with choices beside which any answer is taken, too."""
    fields = tuple(_field(number, question) for number, question in enumerate(questions, 1))
    by_name = {field.name: string(question.get("question")) for field, question in zip(fields, questions, strict=True)}

    def answers(text: str) -> dict[str, str]:
        values = {fields[0].name: text.strip()} if len(fields) == 1 else filled_in(text, fields)
        return {by_name[name]: value for name, value in values.items() if value}

    only = fields[0] if len(fields) == 1 else None
    request = Request(
        id=id_,
        kind=RequestKind.QUESTION if only else RequestKind.FORM,
        title="asks a question" if only else f"asks {len(fields)} questions",
        text=_joined(only.text, _described(questions[0])) if only else "",
        choices=only.choices if only else (),
        fields=() if only else fields,
        tool_call_id=call_id,
    )
    return Asked(request, arguments, answers)


def _field(number: int, question: dict[str, Any]) -> Field:
    labels = [one_line(string(mapping(option).get("label")), _TITLE) for option in items(question.get("options"))]
    return Field(
        name=str(number),
        title=one_line(string(question.get("header")), _TITLE),
        text=_kept(string(question.get("question"))),
        choices=tuple(filter(None, labels))[:_MOST],
        required=True,
    )


def _described(question: dict[str, Any]) -> str:
    """Say what the choices of a question mean."""
    options = [mapping(option) for option in items(question.get("options"))][:_MOST]
    said = [(string(option.get("label")), one_line(string(option.get("description")), _TITLE)) for option in options]
    return "\n".join(f"{one_line(label, _TITLE)}: {meaning}" for label, meaning in said if label and meaning)


def _joined(*parts: str) -> str:
    return _kept("\n\n".join(filter(str.strip, parts)))


def _kept(text: str) -> str:
    return text if len(text) <= CONTENT_LIMIT else text[:CONTENT_LIMIT] + CUT
