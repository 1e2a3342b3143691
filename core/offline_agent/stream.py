"""pi's JSON mode on stdout (as pi 1.5.2 writes it): one event a line, text in small pieces, nothing buffered."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from ..run.finalization import FINALIZE_TOOL
from . import MODEL
from .session import Session, encode
from .tools import Call, Outcome, Toolbox

PIECE = 24
"""Characters of one `text_delta`."""
MAX_WAITING = 1.5
"""Seconds that pacing may add to a whole process."""

_COST: dict[str, float] = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
_USAGE: dict[str, Any] = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "reasoning": 0,
    "totalTokens": 0,
    "cost": _COST,
}


class EventStream:
    """Writes event lines and paces the text, so that a person sees a sentence being written."""

    def __init__(self, descriptor: int, pace: float) -> None:
        self._descriptor = descriptor
        self._pace = pace
        self._waiting_left = MAX_WAITING

    def emit(self, event_type: str, **fields: Any) -> None:
        data = memoryview(f"{encode({'type': event_type, **fields})}\n".encode("utf-8", "replace"))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def update(self, **event: Any) -> None:
        self.emit("message_update", usage=_USAGE, assistantMessageEvent=event)

    def write_text(self, text: str, index: int) -> None:
        self.update(type="text_start", contentIndex=index)
        for start in range(0, len(text), PIECE):
            self.update(type="text_delta", contentIndex=index, delta=text[start : start + PIECE])
            if 0 < self._pace <= self._waiting_left:
                time.sleep(self._pace)
                self._waiting_left -= self._pace
        self.update(type="text_end", contentIndex=index, content=text)


class Conversation:
    """One prompt's exchange: what is said, the calls that go with it, and their results."""

    def __init__(self, stream: EventStream, session: Session, prompt: str) -> None:
        self._stream = stream
        self._session = session
        self._call_prefix = f"call_{session.earlier_turns + 1}_"
        self._calls = 0
        self._messages: list[dict[str, Any]] = []
        stream.emit("agent_start")
        stream.emit("turn_start")
        self._add({"role": "user", "content": [_text(prompt)], "timestamp": _now_ms()})

    def turn(self, said: str, calls: Sequence[Call], toolbox: Toolbox) -> list[Outcome]:
        """Say something and carry out calls; return their outcomes."""
        ids = [f"{self._call_prefix}{self._calls + number}" for number in range(1, len(calls) + 1)]
        self._calls += len(calls)
        message = self._assistant(said, calls, ids)
        outcomes = [self._carry_out(call, call_id, toolbox) for call, call_id in zip(calls, ids, strict=True)]
        results = [
            _tool_result(call, call_id, outcome) for call, call_id, outcome in zip(calls, ids, outcomes, strict=True)
        ]
        for result in results:
            self._add(result)
        self._stream.emit("turn_end", message=message, toolResults=results)
        if calls:
            self._stream.emit("turn_start")
        return outcomes

    def hand_over(self, answer: str) -> None:
        """Give the answer to the tool that ends a conversation, as pi does with a terminating tool."""
        call = Call(FINALIZE_TOOL, {"status": "SUCCESS", "result": answer})
        call_id = f"{self._call_prefix}{self._calls + 1}"
        message = self._assistant("", [call], [call_id])
        outcome = Outcome("The result is handed over.")
        self._stream.emit("tool_execution_start", toolCallId=call_id, toolName=call.name, args=call.args)
        result = {"content": [_text(outcome.text)], "details": call.args, "terminate": True}
        self._stream.emit(
            "tool_execution_end", toolCallId=call_id, toolName=call.name, result=result, isError=False, durationMs=0
        )
        answered = _tool_result(call, call_id, outcome)
        self._add(answered)
        self._stream.emit("turn_end", message=message, toolResults=[answered])

    def end(self) -> None:
        self._stream.emit("agent_end", messages=self._messages, willRetry=False)
        self._stream.emit("agent_settled", aborted=False)

    def _assistant(self, said: str, calls: Sequence[Call], ids: list[str]) -> dict[str, Any]:
        provider, _, model = MODEL.partition("/")
        began = _now_ms()
        message: dict[str, Any] = {
            "role": "assistant",
            "content": [],
            "api": "offline",
            "provider": provider,
            "model": model,
            "usage": _USAGE,
            "stopReason": "pending",
            "timestamp": began,
        }
        self._stream.emit("message_start", message=message)
        content: list[dict[str, Any]] = []
        if said:
            self._stream.write_text(said, 0)
            content.append(_text(said))
        for index, (call, call_id) in enumerate(zip(calls, ids, strict=True), len(content)):
            tool_call = {"type": "toolCall", "id": call_id, "name": call.name, "arguments": call.args}
            self._stream.update(type="toolcall_start", contentIndex=index, id=call_id, toolName=call.name)
            self._stream.update(type="toolcall_end", contentIndex=index, toolCall=tool_call)
            content.append(tool_call)
        reason = "toolUse" if calls else "stop"
        message = {**message, "content": content, "stopReason": reason, "durationMs": _now_ms() - began}
        self._stream.emit("message_end", message=message)
        self._keep(message)
        return message

    def _carry_out(self, call: Call, call_id: str, toolbox: Toolbox) -> Outcome:
        began = time.monotonic()
        self._stream.emit("tool_execution_start", toolCallId=call_id, toolName=call.name, args=call.args)
        outcome = toolbox.carry_out(call)
        self._stream.emit(
            "tool_execution_end",
            toolCallId=call_id,
            toolName=call.name,
            result={"content": [_text(outcome.text)]},
            isError=outcome.is_error,
            durationMs=int((time.monotonic() - began) * 1000),
        )
        return outcome

    def _add(self, message: dict[str, Any]) -> None:
        self._stream.emit("message_start", message=message)
        self._stream.emit("message_end", message=message)
        self._keep(message)

    def _keep(self, message: dict[str, Any]) -> None:
        self._messages.append(message)
        self._session.add_message(message)


def _tool_result(call: Call, call_id: str, outcome: Outcome) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": call.name,
        "content": [_text(outcome.text)],
        "isError": outcome.is_error,
        "timestamp": _now_ms(),
    }


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
