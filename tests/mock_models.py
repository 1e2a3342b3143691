#!/usr/bin/env python3
"""mock_models.py - a scripted loopback model for Claude Code and Codex (standard library only).

    POST /v1/messages (and /count_tokens)   Anthropic Messages   ANTHROPIC_BASE_URL=http://127.0.0.1:N
    POST /v1/responses, /responses          OpenAI Responses     base_url = "http://127.0.0.1:N/v1"
    GET  /v1/models, /models                the models the script names

Replies are streamed (SSE); a Messages request without "stream" is answered whole: Claude Code asks so after broken
streams.
In process: with MockModels(script, log_path=...) as mock: mock.url

    python3 mock_models.py script.json [--port 0] [--log requests.jsonl] [--brief]
    first line on stdout: {"port": N, "url": "http://127.0.0.1:N"}

SCRIPT (JSON)
{
  "index_by": "requests",        which turn answers a request:
                                   "requests"      n-th request, whoever asks (default)
                                   "conversation"  n-th request with the same first user message
  "after": "repeat_last",        past the last turn: "repeat_last" (default) or "error"
  "look_for": ["MARK"],          for each of these texts the log says in which parts of a request it stands
  "models": ["mock-model"],      what GET /models lists
  "turns": [ TURN, ... ]
}
TURN
{
  "when": {...},                 optional: a candidate only if all hold; such turns win and are not counted. Keys:
                                   model, api ("messages"|"responses"), tools (true|false: any tools declared),
                                   last_role, last_contains, any_contains, once (true: answer only one request)
  "delay": 0.0,                  seconds before the reply starts
  "status": 429,                 an error reply with "body" (object or text; default: an error of the API's shape)
  "headers": {"retry-after": "0"},
  "chunk_size": 12, "chunk_delay": 0.0,   characters per delta, seconds between deltas
  "steps": [ STEP, ... ],
  "stop_reason": "end_turn",     default: "tool_use" after tool calls, else "end_turn"; for Responses "max_tokens"
                                   becomes status incomplete; null: the reply ends without its closing events
  "usage": {"input": 100, "cache_read": 0, "cache_write": 0, "output": 20, "reasoning": 0}
}
STEP, one of
  {"text": "..."}                visible text
  {"thinking": "..."}            thinking (Messages) or a reasoning summary (Responses)
  {"tool_calls": [CALL, ...]}    CALL: {"name", "arguments": {...} | "text as it is", "id"?, "namespace"?,
                                   "custom"?: true}
                                   "custom" is a Responses tool that takes free text ("arguments" is that text);
                                   an argument {"from_request": "REGEX"} becomes the last match (group 1 if any)
                                   in the request's messages
  {"sleep": 1.5}                 seconds
  {"hang": true}                 send nothing more, until the client goes
  {"drop": true}                 reset the connection
  {"end": true}                  close cleanly in the middle
  {"sse_error": {"type": "overloaded_error", "message": "..."}}    an error event inside the stream
  {"raw": "event: x\\ndata: {}\\n\\n"}                               bytes as they are
A text may be {"repeat": ["ab", 1000]}.

LOG: one JSON object a line: {"t", "event": "request", "n", "api", "path", "turn", "body"}, then "replied" or
"client_gone"
for the same n. Authorization values never appear. With --brief bodies are cut to what a recording needs: system text as
its length, tools as names, texts at most 400 characters.
"""

from __future__ import annotations

import argparse
import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain

CLIP = 400
CLIENTS_WORDS = (
    r"(?s)<(system-reminder|environment_context|user_instructions|permissions instructions|"
    r"skills_instructions)>.*?</\1>"
)
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class ClientGone(Exception):
    """The connection is over: the other side went, or the script ended it."""


class MockModels:
    """The server: picks a turn for each request and logs what was asked."""

    def __init__(self, script, host="127.0.0.1", port=0, log_path=None, brief=False):
        self.script, self.log_path, self.brief = script, log_path, brief
        self.lock, self.started = threading.Lock(), time.monotonic()
        self.asked, self.counters, self.spent = 0, {}, set()
        handler = type("Handler", (_Handler,), {"mock": self})
        self.httpd = _Server((host, port), handler)
        self.port = self.httpd.server_address[1]
        self.url = f"http://{host}:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.httpd.shutdown()
        self.httpd.server_close()

    def log(self, **record):
        if self.log_path:
            line = json.dumps({"t": round(time.monotonic() - self.started, 3), **record}, ensure_ascii=False)
            with self.lock, open(self.log_path, "a", encoding="utf-8") as file:
                file.write(line + "\n")

    def pick(self, request):
        """Answer (what it was picked by, turn) for a request."""
        turns = self.script.get("turns") or []
        for position, turn in enumerate(turns):
            when = turn.get("when")
            if when and position not in self.spent and request.matches(when):
                if when.get("once"):
                    self.spent.add(position)
                return f"when {position}", turn
        indexed = [turn for turn in turns if not turn.get("when")]
        if not indexed:
            return None, {"status": 500}
        key = request.first_user_text() if self.script.get("index_by") == "conversation" else ""
        with self.lock:
            self.counters[key] = index = self.counters.get(key, -1) + 1
        if index >= len(indexed) and self.script.get("after") == "error":
            return index, {"status": 400, "body": "the script is over"}
        return index, indexed[min(index, len(indexed) - 1)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A killed client resets its connection; that is normal here."""


class _Request:
    """What the script and the log need to know about a body of either API."""

    def __init__(self, api, body):
        self.api, self.body = api, body
        self.turns_key, system_key = ("messages", "system") if api == "messages" else ("input", "instructions")
        turns = body.get(self.turns_key)
        self.items = [{"role": "user", "content": turns}] if isinstance(turns, str) else turns or []
        self.system = _text(body.get(system_key))

    def first_user_text(self):
        return next((_text(item) for item in self.items if item.get("role") == "user"), "")

    def conversation(self):
        return "\n".join(map(_text, self.items))

    def matches(self, when):
        last = self.items[-1] if self.items else {}
        tools, model = bool(self.body.get("tools")), self.body.get("model")
        return (
            when.get("model", model) == model
            and when.get("api", self.api) == self.api
            and when.get("tools", tools) == tools
            and when.get("last_role", last.get("role")) == last.get("role")
            and when.get("last_contains", "") in _text(last)
            and when.get("any_contains", "") in self.conversation()
        )

    def find(self, pattern):
        found = list(re.finditer(pattern, self.conversation()))
        return found[-1][min(1, found[-1].re.groups)] if found else ""

    def places(self, texts):
        parts = {"system": self.system, "tools": json.dumps(self.body.get("tools"), ensure_ascii=False)}
        parts |= {f"{n}:{item.get('role') or item.get('type')}": _text(item) for n, item in enumerate(self.items)}
        return {text: [name for name, part in parts.items() if text in part] for text in texts}

    def brief(self):
        """The body without the client's own words."""
        left_out = ("system", "instructions", "tools", "messages", "input", "metadata", "client_metadata")
        kept = {key: value for key, value in self.body.items() if key not in left_out}
        items = [
            {**item, "content": f"[{len(_text(item))} characters]"}
            if item.get("role") in ("developer", "system")
            else _clip(item)
            for item in self.items
        ]
        tools = [_tool_name(tool) for tool in self.body.get("tools") or []]
        return {**kept, "system_chars": len(self.system), "tools": tools, self.turns_key: items}


def _tool_name(tool):
    if tool.get("type") == "namespace":
        return {tool.get("name"): [_tool_name(inner) for inner in tool.get("tools") or []]}
    return tool.get("name") or tool.get("type")


def _text(value):
    """All text in a message, an item, a block or a list of them."""
    if isinstance(value, dict):
        keys = ("text", "thinking", "content", "output", "input", "arguments", "summary")
        value = [value[key] for key in keys if key in value]
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text, value)))
    return value if isinstance(value, str) else ""


def _clip(value):
    if isinstance(value, dict):
        return {key: _clip(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clip(item) for item in value]
    if isinstance(value, str):
        value = re.sub(CLIENTS_WORDS, lambda found: f"[{found[1]}: {len(found[0])} characters]", value)
        return value if len(value) <= CLIP else f"{value[:CLIP]}[{len(value) - CLIP} more]"
    return value


class _Handler(BaseHTTPRequestHandler):
    mock: MockModels
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # noqa: A002 - the name of the method that it replaces
        pass

    def do_GET(self):
        path = self.path.partition("?")[0].rstrip("/")
        names = self.mock.script.get("models") or ["mock-model"]
        listed = {"object": "list", "data": [{"id": name, "type": "model", "object": "model"} for name in names]}
        self.json(404 if path and not path.endswith("/models") else 200, listed)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        kind = self.path.partition("?")[0].rstrip("/").rpartition("/")[2]
        if kind == "count_tokens":
            return self.json(200, {"input_tokens": max(1, len(raw) // 4)})
        writer = {"messages": _Messages, "responses": _Responses}.get(kind)
        if writer is None:
            return self.json(404, {"error": {"type": "not_found_error", "message": self.path}})
        request = _Request(kind, json.loads(raw))
        with self.mock.lock:
            self.mock.asked = number = self.mock.asked + 1
        index, turn = self.mock.pick(request)
        found = {"found": request.places(self.mock.script["look_for"])} if "look_for" in self.mock.script else {}
        self.mock.log(
            event="request",
            n=number,
            api=kind,
            path=self.path,
            turn=index,
            **found,
            body=request.brief() if self.mock.brief else request.body,
        )
        status = turn.get("status", 200)
        try:
            self.wait(turn.get("delay", 0))
            if status != 200:
                self.json(status, turn.get("body", _error(status)), turn.get("headers"))
            else:
                writer(self, request, turn, number).answer()
            return self.mock.log(event="replied", n=number, status=status)
        except (ClientGone, OSError) as gone:
            self.close_connection = True
            return self.mock.log(event="client_gone", n=number, error=type(gone).__name__)

    def json(self, status, body, headers=None):
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": len(data), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def wait(self, seconds):
        """Sleep, and notice a client that goes meanwhile."""
        end = time.monotonic() + seconds
        while True:
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and self.connection.recv(1, socket.MSG_PEEK) == b"":
                raise ClientGone
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(0.05, left))

    def begin_stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def drop(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise ClientGone


class _Writer:
    """What the two APIs have in common: walking through the steps of a turn."""

    begin: Callable[[], None]
    finish: Callable[[str], None]
    text: Callable[[str], None]
    thinking: Callable[[str], None]
    call: Callable[..., None]
    stream_error: Callable[[dict], object]
    call_prefix: str
    message: dict

    def __init__(self, handler, request, turn, number):
        self.handler, self.request, self.turn, self.number = handler, request, turn, number
        self.usage = {
            "input": 100,
            "cache_read": 0,
            "cache_write": 0,
            "output": 20,
            "reasoning": 0,
            **(turn.get("usage") or {}),
        }
        self.calls, self.parts = 0, []
        self.whole = request.api == "messages" and not request.body.get("stream")

    def answer(self):
        if not self.whole:
            self.handler.begin_stream()
        self.begin()
        for step in self.turn.get("steps", []):
            if step.get("end"):
                return self.handler.chunk(b"")
            self.step(step)
        stop = self.turn.get("stop_reason", "tool_use" if self.calls else "end_turn")
        if stop is not None:
            self.finish(stop)
        return self.handler.json(200, self.message) if self.whole else self.handler.chunk(b"")

    def step(self, step):
        if "text" in step:
            self.text(_repeated(step["text"]))
        elif "thinking" in step:
            self.thinking(_repeated(step["thinking"]))
        elif "tool_calls" in step:
            for call in step["tool_calls"]:
                self.calls += 1
                self.call(
                    call, call.get("id") or f"{self.call_prefix}{self.number:03d}_{self.calls}", self.arguments(call)
                )
        elif "sleep" in step or step.get("hang"):
            self.handler.wait(step.get("sleep", 86400))
        elif step.get("drop"):
            self.handler.drop()
        elif "sse_error" in step:
            self.send("error", self.stream_error(step["sse_error"]))
        elif "raw" in step:
            self.handler.chunk(_repeated(step["raw"]).encode())

    def arguments(self, call):
        arguments = call.get("arguments", {})
        if isinstance(arguments, str):
            return arguments
        filled = {
            key: self.request.find(value["from_request"])
            if isinstance(value, dict) and "from_request" in value
            else value
            for key, value in arguments.items()
        }
        return json.dumps(filled, ensure_ascii=False)

    def pieces(self, text):
        size = max(1, self.turn.get("chunk_size", 12))
        for start in range(0, len(text), size):
            yield text[start : start + size]
            self.handler.wait(self.turn.get("chunk_delay", 0))

    def send(self, name, data):
        if self.whole:
            return
        event = json.dumps({"type": name, **data}, ensure_ascii=False)
        self.handler.chunk(f"event: {name}\ndata: {event}\n\n".encode("utf-8", "replace"))


class _Messages(_Writer):
    call_prefix = "toolu_"

    @staticmethod
    def stream_error(error):
        return {"error": error}

    def begin(self):
        self.message = {
            "id": f"msg_{self.number:06d}",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": self.request.body.get("model"),
            "stop_reason": None,
            "stop_sequence": None,
        }
        self.send("message_start", {"message": {**self.message, "usage": self._usage(1)}})

    def _usage(self, output):
        return {
            "input_tokens": self.usage["input"],
            "cache_creation_input_tokens": self.usage["cache_write"],
            "cache_read_input_tokens": self.usage["cache_read"],
            "output_tokens": output,
        }

    def _block(self, empty, filled, deltas):
        index = len(self.parts)
        self.parts.append({**empty, **filled})
        self.send("content_block_start", {"index": index, "content_block": empty})
        for delta in deltas:
            self.send("content_block_delta", {"index": index, "delta": delta})
        self.send("content_block_stop", {"index": index})

    def text(self, text):
        deltas = ({"type": "text_delta", "text": piece} for piece in self.pieces(text))
        self._block({"type": "text", "text": ""}, {"text": text}, deltas)

    def thinking(self, text):
        deltas = ({"type": "thinking_delta", "thinking": piece} for piece in self.pieces(text))
        signed = [{"type": "signature_delta", "signature": "c2lnbmVk"}]
        self._block({"type": "thinking", "thinking": "", "signature": ""}, {"thinking": text}, chain(deltas, signed))

    def call(self, call, call_id, arguments):
        deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in self.pieces(arguments))
        filled = {"input": json.loads(arguments)} if self.whole else {}
        self._block({"type": "tool_use", "id": call_id, "name": call["name"], "input": {}}, filled, deltas)

    def finish(self, stop):
        delta, usage = {"stop_reason": stop, "stop_sequence": None}, self._usage(self.usage["output"])
        self.message |= {"content": self.parts, **delta, "usage": usage}
        self.send("message_delta", {"delta": delta, "usage": usage})
        self.send("message_stop", {})


class _Responses(_Writer):
    call_prefix = "call_"

    @staticmethod
    def stream_error(error):
        return {"code": error.get("type"), "message": error.get("message")}

    def begin(self):
        self.response = {"id": f"resp_{self.number:06d}", "object": "response", "model": self.request.body.get("model")}
        self.send("response.created", {"response": {**self.response, "status": "in_progress", "output": []}})

    def _item(self, kind, whole, started, deltas=()):
        item = {"type": kind, "id": f"item_{self.number:03d}_{len(self.parts)}", **whole}
        index = len(self.parts)
        self.parts.append(item)
        self.send("response.output_item.added", {"output_index": index, "item": {**item, **started}})
        for name, delta in deltas:
            self.send(f"response.{name}", {"item_id": item["id"], "output_index": index, **delta})
        self.send("response.output_item.done", {"output_index": index, "item": item})

    def text(self, text):
        part = {"type": "output_text", "text": text, "annotations": []}
        deltas = (("output_text.delta", {"content_index": 0, "delta": piece}) for piece in self.pieces(text))
        self._item("message", {"role": "assistant", "content": [part]}, {"content": []}, deltas)

    def thinking(self, text):
        first = [("reasoning_summary_part.added", {"summary_index": 0})]
        deltas = (("reasoning_summary_text.delta", {"summary_index": 0, "delta": piece}) for piece in self.pieces(text))
        summary = [{"type": "summary_text", "text": text}]
        self._item("reasoning", {"summary": summary, "encrypted_content": None}, {"summary": []}, chain(first, deltas))

    def call(self, call, call_id, arguments):
        kind, key = ("custom_tool_call", "input") if call.get("custom") else ("function_call", "arguments")
        named = {name: call[name] for name in ("name", "namespace") if name in call}
        self._item(kind, {"call_id": call_id, **named, key: arguments}, {key: ""})

    def finish(self, stop):
        usage, status = self.usage, "incomplete" if stop == "max_tokens" else "completed"
        prompt = usage["input"] + usage["cache_read"] + usage["cache_write"]
        details = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
        tokens = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": usage["cache_read"]},
            "output_tokens": usage["output"],
            "total_tokens": prompt + usage["output"],
            "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
        }
        response = {**self.response, "status": status, "output": self.parts, **details, "usage": tokens}
        self.send(f"response.{status}", {"response": response})


def _error(status):
    """An error body that both APIs' clients understand."""
    return {"type": "error", "error": {"type": ERRORS.get(status, "api_error"), "message": f"scripted status {status}"}}


def _repeated(value):
    return value["repeat"][0] * value["repeat"][1] if isinstance(value, dict) else value


def main():
    parser = argparse.ArgumentParser(description="A scripted loopback model; see the top of this file.")
    parser.add_argument("script")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log")
    parser.add_argument("--brief", action="store_true")
    options = parser.parse_args()
    with open(options.script, encoding="utf-8") as file:
        mock = MockModels(json.load(file), port=options.port, log_path=options.log, brief=options.brief)
    print(json.dumps({"port": mock.port, "url": mock.url}), flush=True)
    try:
        mock.httpd.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
