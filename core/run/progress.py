"""Describe an agent's work in words; the only formatter of live progress, transcript and app.

The wording follows the design "Subagent Live Progress Rendering"; facts missing from an event are not guessed.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..text.decoder import encode_shown
from ..text.plain import one_line, plain
from .describe import BROKEN_OFF, WAITING, check_words
from .events import (
    AssistantText,
    Check,
    Decision,
    ErrorReported,
    Event,
    HandedBack,
    Interrupted,
    Message,
    Notice,
    Request,
    Retry,
    RunEnded,
    RunQueued,
    TakenOver,
    ToolCall,
    ToolResult,
)
from .model import CheckState, NoticeLevel, by_session
from .outcome import FINALIZE_TOOL
from .requests import WORDS, decision_line, interrupted_line, message_text, request_text

LINE_LIMIT = 160
"""Characters of a line about a tool."""

COMMAND_LIMIT = 100
"""Characters of a shell command."""

_MAX_CALLS = 200
"""Calls remembered until their result arrives."""


class _Wording(Struct, frozen=True):
    """Wording for a known tool; `{}` stands for its subject, the first of `keys` that the call has."""

    keys: tuple[str, ...]
    call: str
    finished: str
    failed: str
    limit: int = LINE_LIMIT
    """Characters of the subject."""


_WORDINGS: dict[str, _Wording] = {
    "read": _Wording(("path", "file_path"), "Reading {}", "Finished reading {}", "Read failed: {}"),
    "grep": _Wording(("pattern",), "Searching code for {}", "Search finished", "Search failed: {}"),
    "find": _Wording(("pattern",), "Scanning for {}", "Scan finished", "Scan failed: {}"),
    "ls": _Wording(("path",), "Listing {}", "Finished listing {}", "Listing failed: {}"),
    "edit": _Wording(("path", "file_path"), "Editing {}", "Finished editing {}", "Edit failed: {}"),
    "write": _Wording(("path", "file_path"), "Writing {}", "Finished writing {}", "Write failed: {}"),
    "bash": _Wording(("command",), "{}", "Command finished", "Command failed: {}", COMMAND_LIMIT),
    FINALIZE_TOOL: _Wording(("result", "error"), "{}", "Result returned", "Result rejected"),
}

_NO_ARGUMENTS = "(no arguments)"
_OTHER_TEXTS = ("Running tool", "tool finished", "tool failed", "Retrying in s", "Warning", "Error", _NO_ARGUMENTS)


def vocabulary(*texts: str) -> frozenset[str]:
    """Return every word, in lower case, of the formatter's own texts and of these texts."""
    import re  # loaded late: only a search needs it

    worded = (text for wording in _WORDINGS.values() for text in (wording.call, wording.finished, wording.failed))
    return frozenset(
        re.findall(r"[a-z]+", " ".join((*worded, *WAITING.values(), *WORDS, *_OTHER_TEXTS, *texts)).lower())
    )


def is_worded(tool_name: str) -> bool:
    """Return whether calls of a tool have subdeck's wording, which omits its name."""
    return tool_name in _WORDINGS


class ProgressFormatter:
    """Turns the events of one run, in order, into text for the user."""

    def __init__(self, cwd: Callable[[], str] = str) -> None:
        """`cwd` returns the run's directory, for a request with paths."""
        self.cwd = cwd
        self._subjects: dict[str, tuple[str, str]] = {}
        """Tool name and subject of the calls without a result, oldest first."""

    def text(self, event: Event) -> str | None:
        """Return the text of an event for the user, None if there is none.

        Assistant text, a structured result, a message, a request and a failed check may have several lines; everything
        else is one line.
        """
        match event:
            case AssistantText():
                text = _words(event.text)
                return f"{text}\n{BROKEN_OFF}" if text and event.partial else text or None
            case ToolCall():
                return _within(event, self._call(event))
            case ToolResult():
                return _within(event, self._result(event))
            case Retry():
                return _retry(event)
            case Notice():
                return _labelled("Warning", event.text) if event.level == NoticeLevel.WARNING else _line(event.text)
            case ErrorReported():
                return _labelled("Error", event.message)
            case RunQueued():
                return WAITING.get(event.waits_for, "Waiting")
            case TakenOver() | HandedBack():
                what = "Opened in the agent" if isinstance(event, TakenOver) else "Returned from the agent"
                return one_line(f"{what}{by_session(event.by)}", LINE_LIMIT)
            case Check():
                return _check(event)
            case RunEnded():
                return one_line(f"{event.status}: {event.reason}", LINE_LIMIT)
            case Message() | Request() | Decision() | Interrupted():
                return _talk(event)
            case _:
                return None

    def _call(self, event: ToolCall) -> str:
        subject = _subject(event)
        if len(self._subjects) >= _MAX_CALLS:
            del self._subjects[next(iter(self._subjects))]
        self._subjects[event.tool_call_id] = (event.tool_name, subject)
        if subject and event.tool_name == FINALIZE_TOOL:
            return "\n\n".join(filter(None, (_words(event.args.get(key)) for key in ("error", "result"))))
        wording = _WORDINGS.get(event.tool_name)
        if wording is None or not subject:
            return f"Running {tool_word(event.tool_name)}"
        return one_line(wording.call.replace("{}", subject), LINE_LIMIT)

    def _result(self, event: ToolResult) -> str:
        tool_name, subject = self._subjects.pop(event.tool_call_id, ("", ""))
        wording = _WORDINGS.get(event.tool_name)
        if wording is None or tool_name != event.tool_name or not subject:
            return f"{tool_word(event.tool_name)} {'failed' if event.is_error else 'finished'}"
        sentence = wording.failed if event.is_error else wording.finished
        return one_line(sentence.replace("{}", subject), LINE_LIMIT)


def _talk(event: Message | Request | Decision | Interrupted) -> str | None:
    match event:
        case Message():
            return message_text(event)
        case Request():
            return f"? {request_text(event)}"
        case Decision():
            return decision_line(event)
        case Interrupted():
            return interrupted_line(event)


def _subject(event: ToolCall) -> str:
    """Return the path, pattern or command of a known tool's call, "" if the call has none."""
    if wording := _WORDINGS.get(event.tool_name):
        for key in wording.keys:
            value = event.args.get(key)
            if isinstance(value, str) and value.strip():
                return one_line(value, wording.limit)
    return ""


def _words(text: object) -> str:
    """Return an agent's own text, with its lines."""
    return plain(text).rstrip().lstrip("\n") if isinstance(text, str) else ""


def tool_word(name: str) -> str:
    return one_line(name, 60) or "tool"


def _within(event: ToolCall | ToolResult, text: str | None) -> str | None:
    """Mark the work of a nested agent."""
    return f"↳ {text}" if text and event.within else text


def _retry(event: Retry) -> str:
    tries = f" {event.attempt}/{event.max_attempts}" if event.max_attempts else ""
    delay = f" in {event.delay_ms / 1000:g} s" if event.delay_ms else ""
    reason = f": {event.reason}" if event.reason.strip() else ""
    return one_line(f"Retrying{tries}{delay}{reason}", LINE_LIMIT * 2)


def _check(event: Check) -> str:
    """Describe the start of a check; or its result, with its last lines if it did not pass."""
    if event.state is CheckState.STARTED:
        return f"Checking: {one_line(event.name, LINE_LIMIT)}"
    verdict = f"Check {check_words(event.result)}"
    output = "" if event.result.passed else plain(event.output).strip("\n")
    return f"{verdict}\n{output}" if output else verdict


def _labelled(label: str, text: str) -> str:
    line = _line(text)
    return f"{label}: {line}" if line else label


def _line(text: str) -> str | None:
    return one_line(text, LINE_LIMIT * 4) or None


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments, one per line; a text of several lines is below its name."""
    return "\n".join(_argument(name, value) for name, value in call.args.items()) or _NO_ARGUMENTS


def _argument(name: str, value: object) -> str:
    shown = plain(value) if isinstance(value, str) else plain(encode_shown(value))
    if "\n" not in shown:
        return f"{one_line(name, 200)}: {shown}"
    return f"{one_line(name, 200)}:\n" + "\n".join(f"  {line}" for line in shown.strip("\n").split("\n"))
