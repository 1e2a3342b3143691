"""A script's turn in each protocol: a stream of server-sent events."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import chain, count
from typing import Any, ClassVar, Protocol

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_USAGE = {"input": 100, "cache_read": 0, "cache_write": 0, "output": 20, "reasoning": 0}
_numbers = count(1)
"""Of answers: names in them differ between answers."""


class Connection(Protocol):
    """The connection that carries an answer."""

    def begin_stream(self) -> None: ...
    def chunk(self, data: bytes) -> None: ...
    def reply(self, status: int, body: dict[str, Any] | str) -> None: ...
    def wait(self, seconds: float) -> None: ...
    def drop(self) -> None: ...


def error(status: int) -> dict[str, Any]:
    """Return an error that the agents understand in each protocol."""
    return {
        "type": "error",
        "error": {"type": _ERRORS.get(status, "api_error"), "message": f"scripted status {status}"},
    }


class Writer:
    """The common part of the protocols: walking through the steps of a turn."""

    def __init__(self, connection: Connection, request: dict[str, Any], turn: dict[str, Any]) -> None:
        self._connection, self._turn = connection, turn
        self._number = next(_numbers)
        self._model = request.get("model")
        self._usage = {**_USAGE, **turn.get("usage", {})}
        self._parts: list[dict[str, Any]] = []
        self._calls = 0

    def answer(self) -> None:
        self._connection.begin_stream()
        self._walk()
        self._connection.chunk(b"")

    def _walk(self) -> None:
        self._begin()
        for step in self._turn.get("steps", ()):
            self._step(step)
        self._finish(self._turn.get("stop_reason", "tool_use" if self._calls else "end_turn"))

    def _step(self, step: dict[str, Any]) -> None:
        if "text" in step:
            self._text(_repeated(step["text"]))
        elif "thinking" in step:
            self._thinking(_repeated(step["thinking"]))
        elif "tool_calls" in step:
            for call in step["tool_calls"]:
                self._calls += 1
                named = {name: call[name] for name in ("name", "namespace") if name in call}
                arguments = call["arguments"]
                whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
                self._call(f"call_{self._number:03d}_{self._calls}", named, whole)
        elif "drop" in step:
            self._connection.drop()
        elif "until" in step:
            while not os.path.exists(step["until"]):
                self._connection.wait(0.02)
        else:
            self._connection.wait(step.get("sleep", 86400))

    def _pieces(self, text: str) -> Iterator[str]:
        size, delay = self._turn.get("chunk_size", 12), self._turn.get("chunk_delay", 0)
        for start in range(0, len(text), size):
            yield text[start : start + size]
            if delay:
                self._connection.wait(delay)

    def _send(self, kind: str, **data: Any) -> None:
        event = json.dumps({"type": kind, **data}, ensure_ascii=False)
        self._connection.chunk(f"event: {kind}\ndata: {event}\n\n".encode("utf-8", "replace"))

    def _begin(self) -> None: ...
    def _text(self, text: str) -> None: ...
    def _thinking(self, text: str) -> None: ...
    def _call(self, call_id: str, named: dict[str, str], arguments: str) -> None: ...
    def _finish(self, stop: str) -> None: ...


class Completions(Writer):
    """OpenAI's chat completions."""

    _STOPS: ClassVar = {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}

    def _emit(self, choices: list[dict[str, Any]], **more: Any) -> None:
        about = {
            "id": f"chatcmpl-{self._number}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": self._model,
        }
        chunk = json.dumps({**about, "choices": choices, **more}, ensure_ascii=False)
        self._connection.chunk(f"data: {chunk}\n\n".encode("utf-8", "replace"))

    def _delta(self, finish: str | None = None, **delta: Any) -> None:
        self._emit([{"index": 0, "delta": delta, "finish_reason": finish}])

    def _begin(self) -> None:
        self._delta(role="assistant", content="")

    def _text(self, text: str) -> None:
        for piece in self._pieces(text):
            self._delta(content=piece)

    def _thinking(self, text: str) -> None:
        for piece in self._pieces(text):
            self._delta(reasoning_content=piece)

    def _call(self, call_id: str, named: dict[str, str], arguments: str) -> None:
        index = self._calls - 1
        begun = {"index": index, "id": call_id, "type": "function", "function": {**named, "arguments": ""}}
        self._delta(tool_calls=[begun])
        for piece in self._pieces(arguments):
            self._delta(tool_calls=[{"index": index, "function": {"arguments": piece}}])

    def _finish(self, stop: str) -> None:
        self._delta(self._STOPS[stop])
        used = self._usage
        prompt = used["input"] + used["cache_read"] + used["cache_write"]
        details = {"prompt_tokens_details": {"cached_tokens": used["cache_read"]}}
        total = prompt + used["output"]
        usage = {"prompt_tokens": prompt, "completion_tokens": used["output"], "total_tokens": total, **details}
        self._emit([], usage=usage)
        self._connection.chunk(b"data: [DONE]\n\n")


class Messages(Writer):
    """Anthropic's messages. After a broken stream, Claude Code requests a whole answer."""

    def __init__(self, connection: Connection, request: dict[str, Any], turn: dict[str, Any]) -> None:
        super().__init__(connection, request, turn)
        self._is_whole = not request.get("stream")

    def answer(self) -> None:
        if not self._is_whole:
            return super().answer()
        self._walk()
        return self._connection.reply(200, self._message)

    def _send(self, kind: str, **data: Any) -> None:
        if not self._is_whole:
            super()._send(kind, **data)

    def _begin(self) -> None:
        about = {"id": f"msg_{self._number:06d}", "type": "message", "role": "assistant", "model": self._model}
        self._message = {**about, "content": [], "stop_reason": None, "stop_sequence": None}
        self._send("message_start", message={**self._message, "usage": self._used(1)})

    def _used(self, output: int) -> dict[str, int]:
        used = self._usage
        cache = {"cache_creation_input_tokens": used["cache_write"], "cache_read_input_tokens": used["cache_read"]}
        return {"input_tokens": used["input"], **cache, "output_tokens": output}

    def _block(self, empty: dict[str, Any], filled: dict[str, Any], deltas: Iterator[dict[str, Any]]) -> None:
        index = len(self._parts)
        self._parts.append({**empty, **filled})
        self._send("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            self._send("content_block_delta", index=index, delta=delta)
        self._send("content_block_stop", index=index)

    def _text(self, text: str) -> None:
        deltas = ({"type": "text_delta", "text": piece} for piece in self._pieces(text))
        self._block({"type": "text", "text": ""}, {"text": text}, deltas)

    def _thinking(self, text: str) -> None:
        deltas = ({"type": "thinking_delta", "thinking": piece} for piece in self._pieces(text))
        signed = ({"type": "signature_delta", "signature": "c2lnbmVk"},)
        self._block({"type": "thinking", "thinking": "", "signature": ""}, {"thinking": text}, chain(deltas, signed))

    def _call(self, call_id: str, named: dict[str, str], arguments: str) -> None:
        deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in self._pieces(arguments))
        empty = {"type": "tool_use", "id": f"toolu_{call_id}", **named, "input": {}}
        self._block(empty, {"input": json.loads(arguments)}, deltas)

    def _finish(self, stop: str) -> None:
        delta, usage = {"stop_reason": stop, "stop_sequence": None}, self._used(self._usage["output"])
        self._message |= {"content": self._parts, **delta, "usage": usage}
        self._send("message_delta", delta=delta, usage=usage)
        self._send("message_stop")


class Responses(Writer):
    """OpenAI's responses."""

    def _begin(self) -> None:
        self._response = {"id": f"resp_{self._number:06d}", "object": "response", "model": self._model}
        self._send("response.created", response={**self._response, "status": "in_progress", "output": []})

    def _item(self, item: dict[str, Any], empty: dict[str, Any], events: Iterator[tuple[str, dict[str, Any]]]) -> None:
        """Send an item that begins empty and is filled by events."""
        index = len(self._parts)
        item = {"id": f"item_{self._number:03d}_{index}", "status": "completed", **item}
        self._parts.append(item)
        self._send("response.output_item.added", output_index=index, item={**item, **empty})
        for name, data in events:
            self._send(f"response.{name}", item_id=item["id"], output_index=index, **data)
        self._send("response.output_item.done", output_index=index, item=item)

    def _text(self, text: str) -> None:
        part = {"type": "output_text", "text": text, "annotations": []}
        first = [("content_part.added", {"content_index": 0, "part": {**part, "text": ""}})]
        deltas = (("output_text.delta", {"content_index": 0, "delta": piece}) for piece in self._pieces(text))
        item = {"type": "message", "role": "assistant", "content": [part]}
        self._item(item, {"content": []}, chain(first, deltas))

    def _thinking(self, text: str) -> None:
        first = [("reasoning_summary_part.added", {"summary_index": 0})]
        deltas = (
            ("reasoning_summary_text.delta", {"summary_index": 0, "delta": piece}) for piece in self._pieces(text)
        )
        item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": None}
        self._item(item, {"summary": []}, chain(first, deltas))

    def _call(self, call_id: str, named: dict[str, str], arguments: str) -> None:
        deltas = (("function_call_arguments.delta", {"delta": piece}) for piece in self._pieces(arguments))
        done = [("function_call_arguments.done", {"arguments": arguments})]
        item = {"type": "function_call", "call_id": call_id, **named, "arguments": arguments}
        self._item(item, {"arguments": ""}, chain(deltas, done))

    def _finish(self, stop: str) -> None:
        used, status = self._usage, "incomplete" if stop == "max_tokens" else "completed"
        prompt = used["input"] + used["cache_read"] + used["cache_write"]
        tokens = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": used["cache_read"]},
            "output_tokens": used["output"],
            "total_tokens": prompt + used["output"],
            "output_tokens_details": {"reasoning_tokens": used["reasoning"]},
        }
        cut = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
        response = {**self._response, "status": status, "output": self._parts, **cut, "usage": tokens}
        self._send(f"response.{status}", response=response)


WRITERS = {"completions": Completions, "messages": Messages, "responses": Responses}
"""By the last part of the path."""


def _repeated(text: Any) -> str:
    return text["repeat"][0] * text["repeat"][1] if isinstance(text, dict) else text
