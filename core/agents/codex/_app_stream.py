"""Read the output of `codex app-server` and write a run's requests: one thread, one turn."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from ...run.events import ErrorReported, Event, Notice, Retry, ToolCall
from ...run.model import NoticeLevel, RunReason
from ...run.outcome import FINALIZE_TOOL, fault_of
from ...text.plain import one_line
from .._json_lines import decode, mapping, string
from ..updates import BEGUN, QUOTED, Updates
from ._items import Tokens, command_of, fault_words, reconnecting
from ._stream import CodexStream, warning
from ._talk import Talk, encoded

_METHOD = re.compile(rb'\{"method":"([A-Za-z/]{1,80})",("id":)?')
_DELTA = b'{"method":"item/agentMessage/delta","params":{"threadId":"'
_TEXT = b'"delta":"'
UPDATES = Updates(
    prefixes=(
        b'{"method":"item/agentMessage/delta"',
        b'{"method":"item/reasoning/summaryTextDelta"',
        b'{"method":"item/reasoning/textDelta"',
        b'{"method":"item/commandExecution/outputDelta"',
        b'{"method":"item/fileChange/outputDelta"',
        b'{"method":"item/plan/delta"',
        b'{"method":"turn/diff/updated"',
    ),
    marker=_TEXT,
    delta=re.compile(_TEXT + BEGUN, re.DOTALL),
    several=re.compile(
        re.escape(_DELTA) + rb'(?P<thread>[^"\n]*)"[^\n]*\n(?:' + re.escape(_DELTA) + rb'(?P=thread)"[^\n]*\n)*'
    ),
    deltas=re.compile(_TEXT + QUOTED, re.DOTALL),
)

_DECLINED: dict[str, dict[str, Any]] = {
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
    "item/permissions/requestApproval": {"permissions": {}},
    "item/tool/requestUserInput": {"answers": {}},
    "mcpServer/elicitation/request": {"action": "decline"},
    "execCommandApproval": {"decision": "denied"},
    "applyPatchApproval": {"decision": "denied"},
}
"""Answers that allow nothing and continue the turn, because no user can decide."""

_BY_PROVIDER = frozenset({"webSearch", "imageGeneration"})
"""Calls within a message; no further message has to follow."""

_OF_A_TURN = frozenset({"item/started", "item/completed", "turn/completed", "error"})
"""Notifications between a turn's beginning and its end."""

_NO_SUCH_REQUEST = -32601
"""JSON-RPC's code for an unknown method."""


class AppStream(CodexStream):
    """The stream of one app-server, for one turn. Other threads belong to agents that Codex starts."""

    updates = UPDATES

    def __init__(self, talk: Talk | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Without a `talk`, the stream is a recording."""
        super().__init__(clock)
        self._talk = talk
        self.is_stdin_done = talk is None
        self.note(silent=True)
        self._thread = ""
        self._turn = ""
        self._counted: dict[str, Tokens] = {}
        """Each thread's last total."""
        self._readers: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "thread/started": self._thread_started,
            "turn/started": self._turn_started,
            "item/started": lambda params: self.began(mapping(params.get("item"))),
            "item/completed": lambda params: self.item_completed(mapping(params.get("item"))),
            "turn/completed": self._turn_completed,
            "error": self._error,
            "warning": self._warning,
            "guardianWarning": self._warning,
            "configWarning": self._config_warning,
            "deprecationNotice": self._config_warning,
            "model/rerouted": self._rerouted,
            "mcpServer/startupStatus/updated": self._server_started,
        }
        if talk:
            self.say(talk.initialize())

    def feed(self, line: bytes) -> list[Event]:
        if self._talk and self.is_stdin_done:
            return []  # a turn that Codex begins on its own while it exits
        if not line.startswith(self.updates.prefixes):
            return self.seen(self.take(line))
        if not self.turn_ended and self._is_ours(line) and (text := self.updates.text(line)):
            self.writing.add(text)
        return []

    def _is_ours(self, delta: bytes) -> bool:
        """Whether a delta is of the main thread; consecutive deltas share a thread."""
        thread = self._thread.encode()
        return not thread or delta.startswith(thread, len(_DELTA))

    def take(self, line: bytes) -> list[Event]:
        match = _METHOD.match(line)
        if (
            match
            and not match[2]
            and match[1].decode("ascii", "replace") not in (*self._readers, "thread/tokenUsage/updated")
        ):
            return []
        message = decode(line)
        if message is None:
            return self.not_understood(line)
        self.note(silent=False)
        method, params = string(message.get("method")), mapping(message.get("params"))
        if not method:
            return self._answered(message) if "id" in message else self.not_understood(line)
        if "id" in message:
            return self._ask(message["id"], method, params)
        thread = string(params.get("threadId"))
        if method == "thread/tokenUsage/updated":
            return self._tokens(thread, params)
        if self.turn_ended and method in _OF_A_TURN:
            return []
        reader = self._readers.get(method)
        is_ours = not thread or not self._thread or thread == self._thread
        return reader(params) if reader and is_ours else []

    # --- responses ---

    def _answered(self, message: dict[str, Any]) -> list[Event]:
        result = mapping(message.get("result"))
        if "error" in message:
            return self._refused(mapping(message["error"]))
        if thread := mapping(result.get("thread")):
            return self._thread_opened(thread, result)
        if turn := mapping(result.get("turn")):
            self._turn = string(turn.get("id")) or self._turn
        elif self._talk:
            self.say(self._talk.next_request(result))
            return warning(self._talk.warning(result))
        return []

    def _refused(self, error: dict[str, Any]) -> list[Event]:
        """Abort if no turn could begin; during a turn, a refused request does not end it."""
        words = one_line(fault_words(error), 600)
        if self._turn:
            return warning(f"the agent refused a request: {words}")
        self.finished_after = 0
        self.is_stdin_done = True
        self.note(ended=RunReason.START_FAILED, error_message=words)
        return [ErrorReported(message=words)]

    def _thread_opened(self, thread: dict[str, Any], result: dict[str, Any]) -> list[Event]:
        self._thread_started({"thread": thread})
        provider = string(result.get("modelProvider")) or string(thread.get("modelProvider"))
        model = string(result.get("model")) or string(thread.get("model"))
        self.note(model="/".join(filter(None, (provider, model))))
        if self._talk and not self._turn:
            self.say(self._talk.start_turn(self._thread))
        return []

    def _thread_started(self, params: dict[str, Any]) -> list[Event]:
        thread = mapping(params.get("thread"))
        if not self._thread and not thread.get("parentThreadId"):
            self._thread = string(thread.get("id"))
            kept = thread.get("ephemeral") is not True
            self.note(
                session_id=(self._thread or None) if kept else None,
                conversation=(string(thread.get("path")) or None) if kept else None,
            )
        return []

    # --- requests of Codex ---

    def _ask(self, id_: object, method: str, params: dict[str, Any]) -> list[Event]:
        if method == "item/tool/call":
            result = _call_result(params)
            if not result["success"]:
                self.note(calling=True)
            return self.respond(id_, result)
        answer = _DECLINED.get(method)
        if answer is None:
            error = {"code": _NO_SUCH_REQUEST, "message": f"{method} is not supported here"}
            if not self.is_stdin_done:
                self.say(encoded({"id": id_, "error": error}))
            return []
        self.respond(id_, answer)
        prefix = "declined, because this run is non-interactive" if self._talk else "it asked for permission"
        return warning(f"{prefix}: {_what_is_asked(method, params)}")

    def respond(self, own_id: object, answer: dict[str, Any]) -> list[Event]:
        if not self.is_stdin_done:
            self.say(encoded({"id": own_id, "result": answer}))
        return []

    # --- the turn ---

    def _turn_started(self, params: dict[str, Any]) -> list[Event]:
        """Begin a turn; a further turn in a recording cancels the previous end."""
        self.finished_after = None
        self.turn_ended = False
        self.note(finished=False, ended=None, stop_reason=None, error_message=None, calling=False)
        self._turn = string(mapping(params.get("turn")).get("id")) or self._turn
        return []

    def began(self, item: dict[str, Any]) -> list[Event]:
        """Handle the start of an item. Codex reports a message's tokens after its calls, with the next request. That is
        too late for a turn limit, so a call itself announces another turn.
        """
        events = self.item_started(item)
        if string(item.get("type")) not in _BY_PROVIDER and any(_needs_turn(event) for event in events):
            self.note(calling=True)
        return events

    def _unpaid(self) -> list[Event]:
        """Report a message with tool calls that broke off before Codex reported its usage."""
        return self.paid(Tokens(), is_counted=False) if self.facts.calling else []

    def end(self) -> list[Event]:
        return [*super().end(), *self._unpaid()]

    def _tokens(self, thread: str, params: dict[str, Any]) -> list[Event]:
        """Count the increase; a resumed conversation first reports its earlier usage, under its old turn."""
        usage = mapping(params.get("tokenUsage"))
        read = self.figures.tokens
        total, last = Tokens.of(mapping(usage.get("total")), read), Tokens.of(mapping(usage.get("last")), read)
        if self.figures.are_wrong:
            return self.paid(Tokens(), is_nested=thread != self._thread)
        before = self._counted.get(thread)
        self._counted[thread] = total
        if thread == self._thread and params.get("turnId") != self._turn:
            return []
        if before is None:
            before = total if (earlier := total.since(last)) is None else earlier
            before = before if last != Tokens() else Tokens()
        added = total.since(before)
        added = last if added is None else added
        return self.paid(added, is_nested=thread != self._thread) if added != Tokens() else []

    def _turn_completed(self, params: dict[str, Any]) -> list[Event]:
        turn = mapping(params.get("turn"))
        if self._turn and string(turn.get("id")) != self._turn:
            return []
        events = [*self.broken_off(), *self._unpaid()]
        match turn.get("status"):
            case "completed":
                self.finished(error_message=None)
            case "interrupted":
                self.finished(stop_reason="aborted")
                self.note(finished=False, ended=RunReason.INTERRUPTED)
            case _:
                events.append(self.failed(mapping(turn.get("error"))))
        return events

    def _error(self, params: dict[str, Any]) -> list[Event]:
        """Handle a retry. The end of the turn repeats any other error; if there is none, this one is final."""
        error = mapping(params.get("error"))
        self.broke_off()
        if params.get("willRetry") is not True:
            self.note(error_message=fault_words(error))
            return []
        attempt, most, _ = reconnecting(string(error.get("message"))) or (0, 0, "")
        details = string(error.get("additionalDetails"))
        reason = fault_words({**error, "message": details} if details else error)
        return [Retry(attempt=attempt, max_attempts=most, delay_ms=0, reason=one_line(reason, 400))]

    # --- notices ---

    def _warning(self, params: dict[str, Any]) -> list[Event]:
        return warning(string(params.get("message")))

    def _config_warning(self, params: dict[str, Any]) -> list[Event]:
        text = one_line(string(params.get("summary")), 600)
        return [Notice(level=NoticeLevel.INFO, text=text)] if text else []

    def _rerouted(self, params: dict[str, Any]) -> list[Event]:
        return warning(f"another model answers instead of {params.get('fromModel')}: {params.get('toModel')}")

    def _server_started(self, params: dict[str, Any]) -> list[Event]:
        if params.get("status") != "failed":
            return []
        return warning(f"cannot start the MCP server {params.get('name')}: {params.get('error')}")


def _needs_turn(event: Event) -> bool:
    return isinstance(event, ToolCall) and event.tool_name != FINALIZE_TOOL


def _call_result(params: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a subdeck tool call; the model corrects a refused call."""
    if params.get("tool") != FINALIZE_TOOL:
        return _tool_response("unknown tool", success=False)
    if fault := fault_of(mapping(params.get("arguments"))):
        return _tool_response(f"Refused: {fault}. Call {FINALIZE_TOOL} again.", success=False)
    return _tool_response("The result was received. End your turn now.", success=True)


def _tool_response(text: str, *, success: bool) -> dict[str, Any]:
    return {"contentItems": [{"type": "inputText", "text": text}], "success": success}


def _what_is_asked(method: str, params: dict[str, Any]) -> str:
    if command := command_of(params):
        return command
    if message := string(params.get("message")):
        return message
    reason = string(params.get("reason"))
    what = {
        "item/fileChange/requestApproval": "a change of files",
        "applyPatchApproval": "a change of files",
        "item/permissions/requestApproval": "further permissions",
        "item/tool/requestUserInput": "a question to the user",
    }.get(method, method)
    return f"{what} ({reason})" if reason else what
