"""pi's JSON mode on stdout (as pi 1.5.2 writes it): one event a line, text in small pieces, nothing buffered."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from .session import MODEL, PROVIDER, Session, encode
from .tools import FINALIZE_TOOL, Call, Outcome

PIECE = 24
"""Characters of one `text_delta`."""
MAX_WAITING_S = 1.5
"""What pacing may add to a run."""

_TOKENS = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "reasoning", "totalTokens"), 0)
_USAGE: dict[str, Any] = {
    **_TOKENS,
    "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), 0),
}


class Conversation:
    """One prompt's exchange: what is said, piece by piece, the calls that go with it, and their results."""

    def __init__(self, descriptor: int, session: Session, pace: float) -> None:
        """`pace`: seconds between two pieces of text, so that a person sees a sentence being written."""
        self._descriptor = descriptor
        self._session = session
        self._pace = pace
        self._waiting_left = MAX_WAITING_S
        self._calls = 0
        self._messages: list[dict[str, Any]] = []

    def emit(self, **event: Any) -> None:
        data = memoryview(encode(event))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def begin(self, prompt: str) -> None:
        if not self._session.earlier_tasks:
            self._session.add("model_change", provider=PROVIDER, modelId=MODEL)
            self._session.add("thinking_level_change", thinkingLevel="off")
        self.emit(type="agent_start")
        self.emit(type="turn_start")
        self._add({"role": "user", "content": _text(prompt), "timestamp": _now_ms()})

    def turn(self, said: str, calls: Sequence[Call], carry_out: Callable[[Call], Outcome]) -> list[Outcome]:
        """Say something and carry out calls; return their outcomes."""
        if len(self._messages) > 1:
            self.emit(type="turn_start")
        first = self._calls + 1
        self._calls += len(calls)
        named = [(call, f"call_{self._session.earlier_tasks + 1}_{n}") for n, call in enumerate(calls, first)]
        message = self._say(said, named)
        outcomes = [self._carry_out(call, call_id, carry_out) for call, call_id in named]
        results: list[dict[str, Any]] = []
        for (call, call_id), outcome in zip(named, outcomes, strict=True):
            result = {"role": "toolResult", "toolCallId": call_id, "toolName": call.name, "timestamp": _now_ms()}
            results.append({**result, "content": _text(outcome.text), "isError": outcome.is_error})
            self._add(results[-1])
        self.emit(type="turn_end", message=message, toolResults=results)
        return outcomes

    def answer(self, text: str, hands_over: bool) -> None:
        """Say the answer, or give it to the tool that ends a conversation; then end."""
        if hands_over:
            call = Call(FINALIZE_TOOL, {"status": "SUCCESS", "result": text})
            self.turn("", [call], lambda _: Outcome("The result is handed over."))
        else:
            self.turn(text, [], lambda _: Outcome(""))
        self.emit(type="agent_end", messages=self._messages, willRetry=False)
        self.emit(type="agent_settled", aborted=False)

    def _say(self, said: str, named: Sequence[tuple[Call, str]]) -> dict[str, Any]:
        began = _now_ms()
        message: dict[str, Any] = {"role": "assistant", "content": [], "api": "offline", "provider": PROVIDER}
        message |= {"model": MODEL, "usage": _USAGE, "stopReason": "pending", "timestamp": began}
        self.emit(type="message_start", message=message)
        content = _text(said) if said else []
        if said:
            self._write(said)
        for call, call_id in named:
            at = len(content)
            content.append({"type": "toolCall", "id": call_id, "name": call.name, "arguments": call.args})
            self._update(type="toolcall_start", contentIndex=at, id=call_id, toolName=call.name)
            self._update(type="toolcall_end", contentIndex=at, toolCall=content[-1])
        reason = "toolUse" if named else "stop"
        message |= {"content": content, "stopReason": reason, "durationMs": _now_ms() - began}
        self._end_message(message)
        return message

    def _write(self, text: str) -> None:
        self._update(type="text_start", contentIndex=0)
        for start in range(0, len(text), PIECE):
            self._update(type="text_delta", contentIndex=0, delta=text[start : start + PIECE])
            if 0 < self._pace <= self._waiting_left:
                time.sleep(self._pace)
                self._waiting_left -= self._pace
        self._update(type="text_end", contentIndex=0, content=text)

    def _update(self, **event: Any) -> None:
        self.emit(type="message_update", usage=_USAGE, assistantMessageEvent=event)

    def _carry_out(self, call: Call, call_id: str, carry_out: Callable[[Call], Outcome]) -> Outcome:
        began = _now_ms()
        named = {"toolCallId": call_id, "toolName": call.name}
        self.emit(type="tool_execution_start", **named, args=call.args)
        outcome = carry_out(call)
        end = {"details": call.args, "terminate": True} if call.name == FINALIZE_TOOL else {}
        result, took = {"content": _text(outcome.text), **end}, _now_ms() - began
        self.emit(type="tool_execution_end", **named, result=result, isError=outcome.is_error, durationMs=took)
        return outcome

    def _add(self, message: dict[str, Any]) -> None:
        self.emit(type="message_start", message=message)
        self._end_message(message)

    def _end_message(self, message: dict[str, Any]) -> None:
        self.emit(type="message_end", message=message)
        self._messages.append(message)
        self._session.add("message", message=message)


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
