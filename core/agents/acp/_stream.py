"""Read the messages of an ACP agent (protocol version 1), as passed on by the bridge."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from ...run.events import (
    ARGS_LIMIT,
    CONTENT_LIMIT,
    CUT,
    AssistantText,
    ErrorReported,
    Event,
    Notice,
    Retry,
    Thinking,
    ToolCall,
    ToolResult,
    UsageReported,
    kept_args,
)
from ...run.model import NoticeLevel, RunReason
from ...run.outcome import FINALIZE_TOOL, fault_of
from ...text.plain import one_line, shortened
from .._diffs import diff_of_claude, diff_of_texts, kept_diff
from .._finalize_tool import NAMES, SERVER
from .._json_lines import count, decode, error_words, is_deep, items, joined_text, mapping, string
from .._stream import AgentStream
from ._notes import EMPTY, Notes, Tokens, reports_nothing
from ._programs import OTHER, program_named

WITHOUT_IDS = frozenset({"@agentclientprotocol/codex-acp"})
"""Agents whose messages have ids, so that a text without an id is a warning."""

GENERAL = frozenset(
    {"internal error", "internal server error", "invalid params", "invalid request", "method not found", "parse error"}
)
"""Error messages that only name the kind of error, as in JSON-RPC; lowercase."""
_CAUSES = ("details", "detail", "message", "error", "reason", "cause")
"""Fields of an error's `data` that may contain the cause, the best first."""
_MOST_CAUSE = 2000
"""Maximum characters of a cause."""
_DEEPEST_CAUSE = 4

_MOST_THOUGHT = 1024 * 1024
"""Maximum characters of one thought."""
_BEFORE_ARGS = frozenset({"cwd"})
"""Arguments that opencode sends before the model has written the command."""
_MOST_OUTPUT = 2 * CONTENT_LIMIT
"""Maximum characters of a running call's output."""

_OF_A_TURN = frozenset({"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"})
"""Updates that belong to a turn, between a prompt and its answer."""

_STOPS = {"end_turn": "stop", "max_tokens": "length", "refusal": "error", "cancelled": "aborted"}
"""The protocol's stop reasons, mapped to subdeck's."""


class Call:
    """A tool call, as its updates have shown it so far."""

    def __init__(self) -> None:
        self.name = ""
        self.title = ""
        self.args: dict[str, Any] = {}
        self.output = ""
        self.edits: list[dict[str, str]] = []
        """Old and new texts, and their paths; may follow the arguments, or replace them."""
        self.diff = ""
        """The same as structured data of Claude Code."""
        self.exit_code: int | None = None
        self.is_reported = False


class _Question(Struct, frozen=True):
    """A call that needs permission."""

    about: str
    allowing: frozenset[str]
    """The options that allow it."""


class AcpStream(AgentStream):
    """One agent's messages for one prompt, and the messages sent to it, if they were recorded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self.note(silent=True)
        self._message = ""
        """The id of the message being written."""
        self._thought: list[str] = []
        self._thought_length = 0
        self._calls: dict[str, Call] = {}
        self._asked: dict[object, _Question] = {}
        """Unanswered requests of the agent, by id."""
        self._needs_ids = False
        self._is_loading = False
        """Whether the agent is repeating an earlier conversation, which brings no new events."""
        self._requests: dict[object, str] = {}
        """Methods of recorded requests to the agent, by id."""
        self._last_answered: object = ""
        """The id of subdeck's request answered last; the recording may have the answer before the request."""
        self._program = OTHER
        self._notes = Notes(self.writing)
        """The notes of a program that mixes its own text into the answer."""
        self._tokens = Tokens(self.figures.tokens)
        self._doubts: list[str] = []
        """Doubts about this turn's end, each the rest of a sentence about the program."""
        self._warning = ""
        """The agent's last text that is not a message."""
        self._is_broken = False
        """Whether the agent reported that its turn failed."""
        self._updates: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "agent_message_chunk": self._text_came,
            "agent_thought_chunk": self._thought_came,
            "tool_call": self._call_came,
            "tool_call_update": self._call_came,
            "usage_update": self._usage_came,
            "session_info_update": self._info_came,
            "config_option_update": self._options_came,
        }

    def take(self, line: bytes) -> list[Event]:
        fields = decode(line)
        if fields is None:
            return self.not_understood(line)
        if "sent" in fields:
            return self._sent(mapping(fields["sent"]))
        if "bridge" in fields:
            return self._reopened() if fields["bridge"] == "reopened" else self._ready()
        method = fields.get("method")
        params = mapping(fields.get("params"))
        if method == "session/update":
            update = mapping(params.get("update"))
            read = self._updates.get(string(update.get("sessionUpdate")))
            if read is None or self._is_loading or (self.turn_ended and self._is_late(update)):
                return []
            self.note(silent=False)
            return read(update)
        if method == "session/request_permission":
            return self._asked_for(_key(fields), params)
        if method == "elicitation/create":
            return self._form_came(_key(fields), params)
        if "error" in fields:
            self._last_answered = _key(fields)
            return self._failed(self._requests.pop(self._last_answered, ""), mapping(fields["error"]))
        if "result" in fields:
            self._last_answered = _key(fields)
            return self._answered(mapping(fields["result"]))
        return [] if isinstance(method, str) else self.not_understood(line)

    def _is_late(self, update: dict[str, Any]) -> bool:
        """Whether an update belongs to a turn that has ended; the end of one of its calls may still follow."""
        kind, call = update.get("sessionUpdate"), self._calls.get(string(update.get("toolCallId")))
        is_end = kind == "tool_call_update" and call is not None and call.is_reported and not _is_handing_over(call)
        return kind in _OF_A_TURN and not (is_end and update.get("status") in ("completed", "failed"))

    def end(self) -> list[Event]:
        return [*self._thought_ended(), *self.broken_off()]

    def _reopened(self) -> list[Event]:
        """Report that a new session replaces the continued one."""
        return [
            _warning(f"{self._program.title} cannot keep loaded sessions: a new session gets the earlier conversation")
        ]

    def _ready(self) -> list[Event]:
        """Handle the bridge's signal that it accepts input for the agent."""
        return []

    def _sent(self, message: dict[str, Any]) -> list[Event]:
        """Handle a message sent to the agent: a request, or an answer to the agent's request."""
        method = string(message.get("method"))
        if not method:
            return self._decided(_key(message), mapping(mapping(message.get("result")).get("outcome")))
        self._requests[_key(message)] = method
        if method == "session/load":
            self._is_loading = True
            self.note(session_id=string(mapping(message.get("params")).get("sessionId")) or self.facts.session_id)
        elif method == "session/prompt":
            self._is_loading = False
            self.note(silent=False)
            if _key(message) != self._last_answered:
                self._begin_turn()
        return []

    def _begin_turn(self) -> None:
        """Begin a turn; a further prompt in a recording cancels the previous end."""
        self.finished_after = None
        self.turn_ended = False
        self._is_broken = False
        self._notes.begin()
        self._doubts.clear()
        self._tokens.begin()
        self._tools.clear()
        self.note(finished=False, ended=None, stop_reason=None, error_message=None, unverified=False)

    def _asked_for(self, key: object, params: dict[str, Any]) -> list[Event]:
        """Handle a permission request for a call."""
        call_id = string(mapping(params.get("toolCall")).get("toolCallId"))
        events = self._call_came(mapping(params.get("toolCall")), is_asked=True)
        call = self._calls.get(call_id, Call())
        options = map(mapping, items(params.get("options")))
        description = one_line(string(call.args.get("command")) or call.title, 120)
        self._asked[key] = _Question(
            f"{call.name} {description}".strip() or "a call",
            frozenset(
                option
                for each in options
                if string(each.get("kind")).startswith("allow") and (option := string(each.get("optionId")))
            ),
        )
        return events

    def _form_came(self, key: object, params: dict[str, Any]) -> list[Event]:
        """Handle a form; no user can fill it in here."""
        return []

    def _decided(self, key: object, outcome: dict[str, Any]) -> list[Event]:
        question = self._asked.pop(key, None)
        if question is None or string(outcome.get("optionId")) in question.allowing:
            return []
        self.denied(question.about)
        return [_warning(f"denied: {question.about}")]

    def _answered(self, result: dict[str, Any]) -> list[Event]:
        if "agentCapabilities" in result or "protocolVersion" in result:
            name = string(mapping(result.get("agentInfo")).get("name"))
            self._needs_ids, self._program = name in WITHOUT_IDS, program_named(name)
        if session_id := string(result.get("sessionId")):
            self.note(session_id=session_id)
        self._options_came(result)
        return self._turn_ended(result) if "stopReason" in result and not self.turn_ended else []

    def _options_came(self, fields: dict[str, Any]) -> list[Event]:
        for option in map(mapping, items(fields.get("configOptions"))):
            if option.get("category") == "model" and (model := string(option.get("currentValue"))):
                self.note(model=model)
        return []

    def _text_came(self, update: dict[str, Any]) -> list[Event]:
        text, message = string(mapping(update.get("content")).get("text")), string(update.get("messageId"))
        if self._needs_ids and not message:
            self._warning = text.strip()
            return [_warning(error_words(self._warning))] if self._warning else []
        events = self._step_ended(mapping(mapping(update.get("_meta")).get("usage")), mapping(update.get("_meta")))
        if self._program.mixes_notes and (notes := self._notes.take(text)) is not None:
            return [*events, *notes]
        events += self._thought_ended()
        if message != self._message:
            events += self._text_ended()
            self._message = message
        if text:
            self.finished_after = None
            self.writing.add_text(text)
        return events

    def _step_ended(self, usage: dict[str, Any], meta: dict[str, Any]) -> list[Event]:
        """Report one request's usage, if the program sends it with the answer's last chunk."""
        if not usage:
            return []
        if failed := count(meta.get("apiErrors")):
            self._doubts.append(f"tried {failed + 1} times: the answer may contain text of failed attempts")
        return self._used(self._tokens.of_step(usage, self.facts.model, is_counted=not failed))

    def _text_ended(self) -> list[Event]:
        text = self.writing.whole()
        self.writing.clear()
        if not text.strip():
            return []
        self.note(final_text=text, partial=False)
        return [AssistantText(text=text)]

    def _thought_came(self, update: dict[str, Any]) -> list[Event]:
        events = self._text_ended()
        text = string(mapping(update.get("content")).get("text"))
        if text and self._thought_length < _MOST_THOUGHT:
            self._thought.append(text)
            self._thought_length += len(text)
        return events

    def _thought_ended(self) -> list[Event]:
        thought, self._thought, self._thought_length = "".join(self._thought).strip(), [], 0
        return [Thinking(text=thought[:_MOST_THOUGHT])] if thought else []

    def _call_came(self, update: dict[str, Any], *, is_asked: bool = False) -> list[Event]:
        """Update a call; return an event once its arguments are known, and again at its end."""
        call_id = string(update.get("toolCallId"))
        if not call_id:
            return []
        self._notes.called()
        self._tokens.called()
        call = self._calls.setdefault(call_id, Call())
        meta = mapping(update.get("_meta"))
        call.name = (
            string(mapping(meta.get("claudeCode")).get("toolName"))
            or string(update.get("name"))
            or call.name
            or string(update.get("kind"))
            or "tool"
        )
        call.title = string(update.get("title")) or call.title
        call.args = mapping(update.get("rawInput")) or call.args
        if _is_handing_over(call):
            call.name, call.args = FINALIZE_TOOL, mapping(call.args.get("arguments")) or call.args
        call.edits = _edits(update) or call.edits
        call.diff = diff_of_claude(mapping(mapping(meta.get("claudeCode")).get("toolResponse"))) or call.diff
        output = string(mapping(meta.get("terminal_output_delta")).get("data"))
        call.output = (call.output + output)[:_MOST_OUTPUT]
        if (code := mapping(meta.get("terminal_exit")).get("exit_code")) is not None and isinstance(code, int):
            call.exit_code = code
        status = update.get("status")
        has_ended = status in ("completed", "failed")
        events: list[Event] = []
        has_args = bool(call.args.keys() - _BEFORE_ARGS)
        if not call.is_reported and (has_args or is_asked or has_ended or status == "in_progress"):
            call.is_reported = True
            events += [*self._thought_ended(), *self._text_ended(), self._call_event(call_id, call)]
        if has_ended:
            events.append(self._call_ended(call_id, call, update))
        return events

    def _call_event(self, call_id: str, call: Call) -> ToolCall:
        self.tool_started(call_id)
        args = call.args or ({"title": call.title} if call.title else {})
        return ToolCall(tool_call_id=call_id, tool_name=call.name, args=kept_args(args, ARGS_LIMIT))

    def _call_ended(self, call_id: str, call: Call, update: dict[str, Any]) -> ToolResult:
        del self._calls[call_id]
        content = _content(update) or call.output
        is_error = update.get("status") == "failed"
        if call.name == FINALIZE_TOOL:
            fault = fault_of(call.args) or ("it failed" if is_error else "")
            self.note(**({"refused": fault} if fault else {"finalized": call.args, "refused": ""}))
        return ToolResult(
            tool_call_id=call_id,
            tool_name=call.name,
            is_error=is_error,
            content=content[:CONTENT_LIMIT],
            truncated=len(content) > CONTENT_LIMIT,
            exit_code=call.exit_code,
            duration_ms=self.tool_ended(call_id),
            diff=call.diff or ("" if call.args else kept_diff(diff_of_texts(call.edits))),
        )

    def _usage_came(self, update: dict[str, Any]) -> list[Event]:
        cost = mapping(update.get("cost"))
        if cost.get("currency") == "USD":
            dollars = self.figures.dollars(cost.get("amount"))
            if not self.figures.are_wrong:
                self._tokens.cost = dollars
        if self._program.mixes_notes:
            self._notes.asked()
        return []

    def _info_came(self, update: dict[str, Any]) -> list[Event]:
        """Handle codex-acp's additions to the protocol: it retries, or its turn failed."""
        codex = mapping(mapping(update.get("_meta")).get("codex"))
        if mapping(codex.get("threadStatus")).get("type") == "systemError":
            self._is_broken = True
        error = mapping(codex.get("error"))
        if error.get("willRetry") is not True:
            return []
        reason = string(error.get("additionalDetails")) or string(error.get("message"))
        return [Retry(attempt=1, max_attempts=0, delay_ms=0, reason=one_line(error_words(reason), 400))]

    def _turn_ended(self, result: dict[str, Any]) -> list[Event]:
        """Handle the answer to the prompt, with the turn's stop reason."""
        reason = string(result.get("stopReason"))
        is_cancelled = reason == "cancelled"
        fault = "" if is_cancelled else self._fault_of_turn(result)
        ended = self.broken_off() if is_cancelled or fault else self._text_ended()
        usage = self._tokens.of_turn(result, _STOPS.get(reason, reason), self._program, self.facts.model)
        events = [*self._thought_ended(), *ended, *self._used(usage)]
        self.note(stop_reason=_STOPS.get(reason, reason), finished=True)
        self.turn_ended = True
        self.finished_after = 0.0
        if reason == "max_turn_requests":
            self.note(ended=RunReason.MAX_TURNS, finished=False)
        elif is_cancelled:
            self.note(ended=RunReason.INTERRUPTED, finished=False)
        elif reason == "refusal":
            self.note(error_message="the model refused to answer")
        elif fault:
            self.note(stop_reason="error", error_message=fault)
            events.append(ErrorReported(message=fault))
        elif reason == "end_turn":
            events += self._unverified(result)
        return events

    def _fault_of_turn(self, result: dict[str, Any]) -> str:
        """Return the error of a turn that the program reported as a normal end; empty if there was none."""
        if self._is_broken:
            return error_words(self._warning) or "the agent ended its turn with an error without a message"
        if result.get("stopReason") != "end_turn":
            return ""
        if reports_nothing(result):
            return f"{self._program.title or 'the agent'} ended its turn without a finished answer from its model"
        if not self._program.mixes_notes:
            return ""
        notes = self._notes
        if notes.error and (notes.is_certain or not mapping(result.get("usage"))):
            is_empty = notes.words.startswith(EMPTY) and not self.facts.final_text and not self.writing.tail
            return "" if is_empty else notes.words or "the model ended with an error without a message"
        if notes.error:  # the model may have written it
            self.writing.add_text(notes.error)
            self._doubts.append("may have written the answer itself: it looks like an error message")
        elif not mapping(result.get("usage")):
            return f"{self._program.title} ended its turn without an answer from its model"
        elif notes.is_empty and not self.facts.denied:
            return "the model's answer is empty"
        return ""

    def _unverified(self, result: dict[str, Any]) -> list[Event]:
        """Return warnings if the end of the turn does not prove that the answer is whole."""
        program = self._program
        if program.mixes_notes and self._notes.is_cut and not self._notes.is_empty:
            self.note(stop_reason="length")
            return []
        if program.lacks:
            self._doubts.append(program.lacks)
        if program.marks_whole and program.marks_whole not in mapping(result.get("_meta")):
            self._doubts.append("did not report a complete answer: the length limit may have cut it off")
        if not self._doubts:
            return []
        self.note(unverified=True)
        return [_warning(f"unverified: {program.title} {doubt}") for doubt in self._doubts]

    def _used(self, event: UsageReported | None) -> list[Event]:
        return [] if event is None else self.used(event)

    def _failed(self, method: str, error: dict[str, Any]) -> list[Event]:
        """Handle an error of the agent; without a known request, it counts as the answer to the prompt."""
        if self.turn_ended:
            return []
        words = error_words(string(error.get("message")) or "the agent answered with an error without a message")
        cause = _cause_of(words, error.get("data"))
        message = f"{words}: {cause}" if cause and cause not in words else words
        if method not in ("", "session/prompt"):
            self.note(error_message=message)
            return [ErrorReported(message=message)]
        if self.writing.tail and self.writing.tail.strip() in message:
            self.writing.clear()  # the agent sent its error as if it were an answer
        usage = self._tokens.of_turn({}, "error", self._program, self.facts.model)
        events = [*self._thought_ended(), *self.broken_off(), *self._used(usage)]
        self.note(stop_reason="error", error_message=message, finished=True)
        self.turn_ended = True
        self.finished_after = 0.0
        return [*events, ErrorReported(message=message)]


def _key(message: dict[str, Any]) -> object:
    key = message.get("id")
    return key if isinstance(key, int | str) else None


def is_general(words: str) -> bool:
    """Whether an error's message only names the kind of error."""
    return words.strip().rstrip(".").lower() in GENERAL


def _cause_of(words: str, data: object) -> str:
    """Return the cause from an error's `data`; all `data` as JSON if its form is unknown and `words` are general."""
    cause = error_words(_cause_in(data, _DEEPEST_CAUSE)[:_MOST_CAUSE])
    if not cause and data and is_general(words):
        cause = msgspec.json.encode(data).decode("utf-8", "replace")
    return shortened(cause, _MOST_CAUSE)


def _cause_in(data: object, depth: int) -> str:
    if isinstance(data, str):
        return data.strip()
    if not depth:
        return ""
    values = items(data)[:1] or [mapping(data).get(name) for name in _CAUSES]
    return next((cause for value in values if (cause := _cause_in(value, depth - 1))), "")


def _warning(text: str) -> Notice:
    return Notice(level=NoticeLevel.WARNING, text=text)


def _edits(update: dict[str, Any]) -> list[dict[str, str]]:
    """Return the texts that a call replaces, if given."""
    return [
        {"path": string(block.get("path")), "oldText": string(block.get("oldText")), "newText": new_text}
        for block in map(mapping, items(update.get("content")))
        if block.get("type") == "diff" and isinstance(new_text := block.get("newText"), str)
    ]


def _is_handing_over(call: Call) -> bool:
    """Whether a call is to the structured result tool, by its exact name: codex-acp puts server and tool into the
    arguments, claude-agent-acp sends the name separately, others only use the title. A command's title is written by
    the model, so it does not count.
    """
    if call.args.keys() == {"server", "tool", "arguments"}:
        return (call.args["server"], call.args["tool"]) == (SERVER, FINALIZE_TOOL)
    is_named = call.name in NAMES or (call.name in ("other", "tool") and call.title in NAMES)
    return is_named and "command" not in call.args


def _content(update: dict[str, Any]) -> str:
    """Return a call's output as text."""
    raw = update.get("rawOutput")
    if isinstance(raw, str):
        return raw
    fields = mapping(raw)
    if fields.keys() >= {"result", "error"}:  # codex-acp's form for the output of an MCP server's tool
        text, _ = joined_text(mapping(fields["result"]).get("content"), 2 * CONTENT_LIMIT)
        return text or string(mapping(fields["error"]).get("message"))
    parts: list[str] = []
    for block in map(mapping, items(update.get("content"))):
        if block.get("type") == "content":
            parts.append(string(mapping(block.get("content")).get("text")))
        elif block.get("type") == "diff":
            parts.append(string(block.get("path")))
    return "\n".join(filter(None, parts)) or ("" if raw is None else CUT if is_deep(raw) else str(raw))
