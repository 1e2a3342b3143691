"""Read the streaming JSON of Claude Code 2.1 as normalized events, and detect when and how the agent finished."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from ...run.events import (
    ARGS_LIMIT,
    CONTENT_LIMIT,
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
from ...run.fold import NESTED, add_usage
from ...run.model import NoticeLevel, RunReason, Usage
from ...run.outcome import FINALIZE_TOOL, StreamFacts, fault_of
from ...text.plain import one_line
from .._diffs import diff_of_claude
from .._figures import MOST_MS, MOST_TRIES, whole
from .._finalize_tool import CLAUDE_NAME
from .._json_lines import decode, error_words, items, joined_text, mapping, string
from .._stream import AgentStream
from .program import OURS, UPDATES, conversation_file

_SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code itself writes, such as errors."""

_STOPS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "toolUse", "max_tokens": "length"}
"""The API's stop reasons, mapped to subdeck's."""

_EXIT_CODE = r"Exit code (\d{1,10})\b"
_MOST = 1000
"""Maximum calls and messages remembered."""

_OF_A_TURN = frozenset({"stream_event", "assistant", "user", "result"})
"""Lines between a turn's beginning and its result, except those of nested agents."""

_LIMITS = {"error_max_turns": RunReason.MAX_TURNS, "error_max_budget_usd": RunReason.BUDGET}


class ClaudeStream(AgentStream):
    """The stream of one process: one prompt, and the turns that the program adds on its own."""

    updates = UPDATES
    _is_joined = True
    """Whether the facts include all texts of the last message, which are joined on demand."""

    def __init__(self, environment: dict[str, str] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """`environment` is the agent's, if known; it determines where the conversation is stored."""
        super().__init__(clock)
        self.note(silent=True)
        self._environment = environment
        self._message = ""
        """The id of the main conversation's last message."""
        self._texts: list[str] = []
        """Texts of that message."""
        self._called: set[str] = set()
        """Tools called by that message."""
        self._counted: dict[str, None] = {}
        """Ids of messages with known usage."""
        self._begun_with: object = None
        """The message's usage at its beginning, with its whole input; None if not reported."""
        self._names: dict[str, str] = {}
        """Tools of the calls without a result, by call id."""
        self._payload: dict[str, Any] = {}
        """Arguments of the last structured result call."""
        self._tasks: set[str] = set()
        """Background tasks, which bring another turn when they end."""
        self._reported = Usage()
        """Usage reported since the last result."""
        self._readers: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "system": self._system,
            "stream_event": self._progressed,
            "assistant": self._assistant,
            "user": self._user,
            "result": self._result,
        }

    @property
    def facts(self) -> StreamFacts:
        if not self._is_joined:
            self.note(final_text="\n\n".join(self._texts))
        return super().facts

    def note(self, **changes: Any) -> None:
        self._is_joined |= "final_text" in changes
        super().note(**changes)

    @property
    def running_tools(self) -> int:
        return len(self._tools) + len(self._tasks)

    def take(self, line: bytes) -> list[Event]:
        fields = decode(line)
        if fields is None:
            return self.not_understood(line)
        kind = string(fields.get("type"))
        is_of_turn = kind in _OF_A_TURN and not fields.get("parent_tool_use_id") and fields.get("isReplay") is not True
        if self.turn_ended and is_of_turn:
            return []
        reader = self._readers.get(kind)
        return reader(fields) if reader else []

    def end(self) -> list[Event]:
        if self._environment is not None and self.facts.session_id:
            self.note(conversation=conversation_file(self.facts.session_id, self._environment))
        if self._message in self._counted or self.facts.finished:
            return super().end()
        if self._texts:
            self.note(partial=True)  # when it is killed, it sends its unfinished text as a message
        paid = self._paid(self._begun_with, "aborted") if self._begun_with is not None else []
        return [*super().end(), *paid]

    # --- program output ---

    def _system(self, fields: dict[str, Any]) -> list[Event]:
        match fields.get("subtype"):
            case "init":
                model = string(fields.get("model"))
                self.finished_after = None
                self.turn_ended = False
                self.note(
                    silent=False,
                    finished=False,
                    ended=None,
                    session_id=string(fields.get("session_id")) or self.facts.session_id,
                    model=f"anthropic/{model}" if model else self.facts.model,
                )
                return self._servers(fields)
            case "api_retry":
                reason = " ".join(filter(None, (_number(fields.get("error_status")), string(fields.get("error")))))
                return [
                    Retry(
                        attempt=whole(fields.get("attempt"), MOST_TRIES) or 0,
                        max_attempts=whole(fields.get("max_retries"), MOST_TRIES) or 0,
                        delay_ms=whole(fields.get("retry_delay_ms"), MOST_MS) or 0,
                        reason=error_words(reason),
                    )
                ]
            case "model_fallback":
                models = (string(fields.get(name)) or "?" for name in ("original_model", "fallback_model"))
                return [warning("the model {} is not available now; {} answers instead".format(*models))]
            case "permission_denied":
                tool, why = own_name(string(fields.get("tool_name"))), string(fields.get("message"))
                self.denied(one_line(tool, 100), is_reported=True)
                return [warning(f"a call to {tool} was denied: {one_line(why.partition(' IMPORTANT:')[0], 300)}")]
            case "compact_boundary":
                return [Notice(level=NoticeLevel.INFO, text="the conversation was compacted")]
            case subtype:
                self._note_task(string(subtype), fields)
                return []

    def _servers(self, fields: dict[str, Any]) -> list[Event]:
        """Warn about unconnected MCP servers: their tools are missing."""
        missing = [
            f"{one_line(string(server.get('name')), 40)} ({one_line(string(server.get('status')), 40)})"
            for server in map(mapping, items(fields.get("mcp_servers")))
            if server.get("status") not in ("connected", "pending")
        ]
        return [warning(f"MCP servers not connected: {', '.join(missing)}")] if missing else []

    def _note_task(self, subtype: str, fields: dict[str, Any]) -> None:
        task = string(fields.get("task_id"))
        if subtype in ("task_started", "task_updated") and fields.get("is_backgrounded") is True:
            if len(self._tasks) < _MOST:
                self._tasks.add(task)
        elif subtype == "task_notification":
            self._tasks.discard(task)
        elif subtype == "background_tasks_changed":
            tasks = [
                string(mapping(task).get("task_id") or mapping(task).get("id")) for task in items(fields.get("tasks"))
            ]
            self._tasks = set(tasks[:_MOST])

    # --- messages ---

    def _progressed(self, fields: dict[str, Any]) -> list[Event]:
        if fields.get("parent_tool_use_id"):
            return []
        event = mapping(fields.get("event"))
        match event.get("type"):
            case "message_start":
                message = mapping(event.get("message"))
                broken = self.broken_off()
                self._begin(string(message.get("id")), message.get("usage"))
                return broken
            case "content_block_start" if mapping(event.get("content_block")).get("type") == "text":
                self.writing.add(b"")
            case "content_block_delta":  # in a key order that the updates don't match
                delta = mapping(event.get("delta"))
                if delta.get("type") == "text_delta":
                    self.writing.add(_escaped(string(delta.get("text"))))
            case "message_delta":
                stop = string(mapping(event.get("delta")).get("stop_reason"))
                self.note(stop_reason=_STOPS.get(stop, stop) or None)
                if not stop and self._texts:
                    self.note(partial=True)  # it was ended between two blocks
                return self._paid(event.get("usage"), stop or "aborted")
            case _:
                pass
        return []

    def _begin(self, message: str, usage: object = None) -> None:
        if message != self._message:
            _ = self.facts  # joins its text so far
            self._message, self._texts, self._called = message, [], set()
            self._begun_with = usage

    def _paid(self, usage: object, stop: str) -> list[Event]:
        """Report a message's usage, once."""
        if self._message in self._counted:
            return []
        if len(self._counted) >= _MOST:
            del self._counted[next(iter(self._counted))]
        self._counted[self._message] = None
        fields, tokens = mapping(usage), self.figures.tokens
        event = UsageReported(
            input=tokens(fields.get("input_tokens")),
            output=tokens(fields.get("output_tokens")),
            cache_read=tokens(fields.get("cache_read_input_tokens")),
            cache_write=tokens(fields.get("cache_creation_input_tokens")),
            cost=0.0,  # the result has the cost of all messages
            model=self.facts.model,
            stop_reason=_STOPS.get(stop, stop),
            priced=False,
        )
        self._reported = add_usage(self._reported, event)
        return self.used(event)

    def _assistant(self, fields: dict[str, Any]) -> list[Event]:
        message, within = mapping(fields.get("message")), string(fields.get("parent_tool_use_id"))
        if message.get("model") == _SYNTHETIC:
            return []
        self.note(silent=False)
        events: list[Event] = []
        if not within:
            if string(message.get("id")) != self._message:  # it was not streamed
                self._begin(string(message.get("id")))
                stop = string(message.get("stop_reason"))
                self.note(stop_reason=_STOPS.get(stop, stop) or None, error_message=None)
                if stop:
                    events += self._paid(message.get("usage"), stop)
            self.note(error_message=None)
        for block in map(mapping, items(message.get("content"))):
            events += self._block(block, within, breaks_off=fields.get("aborted") is True)
        return events

    def _block(self, block: dict[str, Any], within: str, *, breaks_off: bool) -> list[Event]:
        text, thought = string(block.get("text")), string(block.get("thinking"))
        match block.get("type"):
            case "text" if text.strip() and within:
                return [Notice(level=NoticeLevel.INFO, text=f"↳ {one_line(text, 2000)}")]
            case "text" if text.strip():
                self.writing.clear()
                self._texts.append(text)
                self._is_joined = False
                self.note(partial=breaks_off)
                return [AssistantText(text=text, partial=breaks_off)]
            case "thinking" if thought.strip() and not within:
                return [Thinking(text=thought)]
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                return [self._call(block, within)]
            case _:
                return []

    def _call(self, block: dict[str, Any], within: str) -> ToolCall:
        call_id, name, args = string(block.get("id")), string(block.get("name")), mapping(block.get("input"))
        tool = own_name(name)
        self.tool_started(call_id)
        if len(self._names) >= _MOST:
            del self._names[next(iter(self._names))]
        self._names[call_id] = tool
        if tool == FINALIZE_TOOL:
            self._payload = args
        if not within:
            self._called.add(tool)
            self.note(handing_over=self._called == {FINALIZE_TOOL})
        return ToolCall(tool_call_id=call_id, tool_name=tool, args=kept_args(args, ARGS_LIMIT), within=within)

    def _user(self, fields: dict[str, Any]) -> list[Event]:
        """Read the results of calls; other user messages are repeats or the program's own."""
        if fields.get("isReplay") is True:
            return []
        within, content = string(fields.get("parent_tool_use_id")), mapping(fields.get("message")).get("content")
        events: list[Event] = []
        blocks = list(map(mapping, items(content)))
        # `tool_use_result` is outside the message, so it is only used if the message has one tool result.
        is_only = sum(block.get("type") == "tool_result" for block in blocks) == 1
        diff = diff_of_claude(mapping(fields.get("tool_use_result"))) if is_only else ""
        for block in blocks:
            if block.get("type") == "tool_result":
                events.append(self._tool_ended(block, within, diff))
            elif not within and (text := string(block.get("text")).strip()):
                events.append(Notice(level=NoticeLevel.INFO, text=one_line(text, 400)))
        return events

    def _tool_ended(self, block: dict[str, Any], within: str, diff: str) -> ToolResult:
        call_id, is_error = string(block.get("tool_use_id")), block.get("is_error") is True
        content, truncated = joined_text(block.get("content"), CONTENT_LIMIT)
        tool = self._names.pop(call_id, "tool")
        if tool == FINALIZE_TOOL:
            handed = None if is_error else self._payload
            self.note(handing_over=self.facts.handing_over and not is_error, finalized=handed or self.facts.finalized)
            if is_error:
                self.note(refused=fault_of(self._payload) or one_line(content, 200) or "it failed")
        code = re.match(_EXIT_CODE, content) if is_error and tool == "bash" else None
        return ToolResult(
            tool_call_id=call_id,
            tool_name=tool,
            is_error=is_error,
            content=content,
            truncated=truncated,
            exit_code=min(int(code[1]), 2**31 - 1) if code else None,
            duration_ms=self.tool_ended(call_id),
            within=within,
            diff=diff,
        )

    # --- end ---

    def _result(self, fields: dict[str, Any]) -> list[Event]:
        """Handle the end of a turn: the last one, unless a background task brings another."""
        events = [*self.broken_off(), *self._settled(fields)]
        self._tools.clear()
        self._names.clear()
        self._begun_with = None
        self.finished_after = None if self._tasks else 0
        self.turn_ended = True
        self.note(ended=None)
        subtype, text = string(fields.get("subtype")), string(fields.get("result"))
        if subtype == "success" and fields.get("is_error") is False:
            self.note(finished=True, error_message=None, final_text=self._answer(text))
            return events
        problem = self._problem(fields, text)
        if subtype in _LIMITS:
            self.note(finished=False, ended=_LIMITS[subtype], error_message=problem)
        elif self.facts.silent:
            self.note(finished=False, ended=RunReason.START_FAILED, error_message=problem)
        elif string(fields.get("terminal_reason")).startswith("aborted"):
            self.note(finished=False, ended=RunReason.INTERRUPTED, error_message=None)
            return events
        else:
            self.note(finished=True, stop_reason="error", error_message=problem)
        events.append(ErrorReported(message=problem))
        return events

    def _answer(self, text: str) -> str | None:
        """Return the answer: the last message's text, or the result's text if that message was not shown."""
        if not text.strip():
            return None
        return self.facts.final_text if self._texts else text

    def _problem(self, fields: dict[str, Any], text: str) -> str:
        errors = [string(error) or string(mapping(error).get("message")) for error in items(fields.get("errors"))]
        words = text.strip() or "; ".join(filter(None, errors)) or string(fields.get("terminal_reason"))
        if fields.get("stop_reason") == "refusal":
            words = f"the model refused: {words}" if words else "the model refused to answer"
        return error_words(words) or "the agent ended with an error without a message"

    def _settled(self, fields: dict[str, Any]) -> list[Event]:
        """Report the usage since the last result that messages did not include: the cost, nested agents and failed
        attempts. The other sums in a result cover the whole conversation.
        """
        used = [mapping(usage) for usage in mapping(fields.get("model_usage_since_last_result")).values()]
        before, self._reported = self._reported, Usage()
        if not used:
            return []
        event = UsageReported(
            input=self._more(used, "inputTokens", before.input),
            output=self._more(used, "outputTokens", before.output),
            cache_read=self._more(used, "cacheReadInputTokens", before.cache_read),
            cache_write=self._more(used, "cacheCreationInputTokens", before.cache_write),
            cost=self.figures.dollars(sum(self.figures.dollars(usage.get("costUSD")) for usage in used)),
            model=self.facts.model,
            stop_reason=NESTED,
            priced=all("costUSD" in usage for usage in used),
        )
        return self.used(event)

    def _more(self, used: list[dict[str, Any]], name: str, reported: int) -> int:
        total = sum(self.figures.tokens(usage.get(name)) for usage in used)
        return self.figures.tokens(max(0, total - reported))


def own_name(tool: str) -> str:
    """Return subdeck's name of a tool."""
    return FINALIZE_TOOL if tool == CLAUDE_NAME else OURS.get(tool, tool)


def warning(text: str) -> Notice:
    return Notice(level=NoticeLevel.WARNING, text=text)


def _number(value: object) -> str:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1000 else ""


def _escaped(text: str) -> bytes:
    """Return text as escaped inside a JSON string."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    )
    return escaped.encode("utf-8", "replace") or b" "
