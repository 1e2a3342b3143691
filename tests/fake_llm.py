#!/usr/bin/env python3
"""fake_llm.py - scripted loopback OpenAI-compatible chat-completions server (stdlib only).

Serves POST {base}/chat/completions (SSE when the request has "stream": true, one JSON object
otherwise) and GET {base}/models on 127.0.0.1.  What it answers is read from a scenario file.

    python3 fake_llm.py scenario.json [--port 0] [--log requests.jsonl] [--print-port]

The first stdout line is {"port": N, "base_url": "http://127.0.0.1:N/v1"}.
It can also be used in process:  with FakeLLM(scenario, log_path=...) as srv: srv.base_url

Scenario format (JSON)
----------------------
{
  "index_by": "conversation",      // which turn answers a request (default "conversation"):
                                   //   "requests"      n-th request to this scenario, whoever asks
                                   //   "conversation"  n-th request with the same model + first user message
                                   //   "assistant"     number of assistant messages in the request
  "after": "repeat_last",          // past the last turn: "repeat_last" (default), "loop", "error"
  "turns": [ TURN, ... ],
  "models": { "<model id>": { "turns": [...], "index_by": ..., "after": ... } }   // optional, per model
}
TURN
{
  "when": {"last_contains": "x"},  // optional: this turn is only a candidate when the last message's text
                                   //   contains x ("last_role", "model", "any_contains" also work);
                                   //   turns with a matching "when" win over indexed ones
  "status": 200,                   // != 200: error reply, then "body" (object or string) and "headers"
  "body": {...}, "headers": {"retry-after": "1"},
  "delay": 0.0,                    // seconds before the reply starts
  "chunk_delay": 0.0,              // seconds between SSE chunks
  "chunk_size": 12,                // characters per text / reasoning / argument delta
  "steps": [ STEP, ... ],
  "finish_reason": "stop",         // default: "tool_calls" if a tool_calls step was sent, else "stop"; null = none
  "usage": {"prompt_tokens": 10, "completion_tokens": 5, ...},   // default: rough estimate; null = none
  "done": true                     // send "data: [DONE]"
}
STEP (one of)
  {"text": "..."}                               visible text
  {"reasoning": "...", "field": "reasoning_content"}   thinking ("reasoning", "reasoning_text" also seen in the wild)
  {"tool_calls": [{"name": "read", "arguments": {...} | "raw json string", "id": "call_1"}]}
                                                several entries = parallel calls in one assistant message
  {"sleep": 1.5}
  {"hang": true}                                keep the connection open, send nothing (until client leaves)
  {"drop": true}                                abort the TCP connection mid-stream
  {"end": true}                                 close cleanly here (no finish_reason, no [DONE])
  {"sse_error": {"message": "...", "code": 500}}  an {"error": ...} object inside the stream
  {"raw": "data: not json\n\n"}                 bytes as they are
In every string of a step, {"repeat": ["ab", 1000]} may stand for "ab" * 1000.
"""

import argparse
import hashlib
import json
import select
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def _text(value) -> str:
    if isinstance(value, dict) and "repeat" in value:
        unit, count = value["repeat"]
        return str(unit) * count
    return str(value)


def _message_text(message):
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(p.get("text", "") for p in content if isinstance(p, dict))
    return ""


class _Gone(Exception):
    pass


class FakeLLM:
    def __init__(self, scenario, host="127.0.0.1", port=0, log_path=None):
        self.scenario = scenario
        self.log_path = log_path
        self.counters = {}
        self.lock = threading.Lock()
        self.t0 = time.monotonic()
        outer = self

        class Handler(_Handler):
            fake = outer

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client_address):
                pass  # a killed client resets its connection; that is normal here

        self.httpd = Server((host, port), Handler)
        self.host, self.port = self.httpd.server_address[:2]
        self.base_url = f"http://{self.host}:{self.port}/v1"
        self.thread = threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def stop(self):
        self.httpd.shutdown()
        self.httpd.server_close()

    def log(self, **record):
        record = {"t": round(time.monotonic() - self.t0, 4), **record}
        if self.log_path:
            with self.lock, open(self.log_path, "a", encoding="utf-8") as fh:
                fh.write(json.dumps(record, ensure_ascii=False) + "\n")

    def pick(self, body):
        model = body.get("model", "")
        messages = body.get("messages") or []
        scenario = self.scenario.get("models", {}).get(model, self.scenario)
        turns = scenario.get("turns") or []
        last = messages[-1] if messages else {}
        for turn in turns:
            when = turn.get("when")
            if when and self._matches(when, model, messages, last):
                return "when", turn
        indexed = [t for t in turns if not t.get("when")]
        index_by = scenario.get("index_by", "conversation")
        if index_by == "assistant":
            index = sum(1 for m in messages if m.get("role") == "assistant")
        else:
            if index_by == "requests":
                key = ("requests", id(scenario))
            else:
                first = next((_message_text(m) for m in messages if m.get("role") == "user"), "")
                key = (model, hashlib.sha256(first.encode("utf-8", "replace")).hexdigest())
            with self.lock:
                index = self.counters.get(key, 0)
                self.counters[key] = index + 1
        if not indexed:
            return index, {"status": 500, "body": {"error": {"message": "fake_llm: no turns"}}}
        if index >= len(indexed):
            after = scenario.get("after", "repeat_last")
            if after == "error":
                return index, {"status": 500, "body": {"error": {"message": "fake_llm: script is over"}}}
            if after == "loop":
                return index, indexed[index % len(indexed)]
            return index, indexed[-1]
        return index, indexed[index]

    @staticmethod
    def _matches(when, model, messages, last):
        if "model" in when and when["model"] != model:
            return False
        if "last_role" in when and when["last_role"] != last.get("role"):
            return False
        if "last_contains" in when and when["last_contains"] not in _message_text(last):
            return False
        wanted = when.get("any_contains", "")
        return not wanted or any(wanted in _message_text(m) for m in messages)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeLLM
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # noqa: A002 - the name of the method that it replaces
        pass

    def _json(self, status, body, headers=None):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path.rstrip("/").endswith("/models"):
            ids = list(self.fake.scenario.get("models", {})) or ["fake"]
            self._json(200, {"object": "list", "data": [{"id": i, "object": "model"} for i in ids]})
        else:
            self._json(404, {"error": {"message": "not found"}})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            self._json(400, {"error": {"message": "bad json"}})
            return
        index, turn = self.fake.pick(body)
        self.fake.log(
            event="request",
            path=self.path,
            turn=index,
            headers={
                k.lower(): (self._hidden(v) if k.lower() == "authorization" else v) for k, v in self.headers.items()
            },
            body=body,
        )
        try:
            time.sleep(turn.get("delay", 0))
            if turn.get("status", 200) != 200:
                self._json(
                    turn["status"],
                    turn.get("body", {"error": {"message": f"HTTP {turn['status']}"}}),
                    turn.get("headers"),
                )
            elif self.path.endswith("/responses"):
                self._responses(turn)
            elif body.get("stream"):
                self._stream(body, turn)
            else:
                self._whole(body, turn)
            self.fake.log(event="replied", turn=index, status=turn.get("status", 200))
        except (_Gone, BrokenPipeError, ConnectionResetError) as exc:
            self.fake.log(event="client_gone", turn=index, error=type(exc).__name__)
            self.close_connection = True

    @staticmethod
    def _hidden(value):
        return "<set, sha256 " + hashlib.sha256(value.encode()).hexdigest()[:8] + ">"

    # ---- streaming -----------------------------------------------------------------------------
    def _client_left(self):
        readable, _, _ = select.select([self.connection], [], [], 0)
        if readable:
            try:
                return self.connection.recv(1, socket.MSG_PEEK) == b""
            except OSError:
                return True
        return False

    def _wait(self, seconds):
        end = time.monotonic() + seconds
        while True:
            if self._client_left():
                raise _Gone()
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(0.05, left))

    def _write(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _stream(self, body, turn):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        base = {
            "id": "chatcmpl-" + hashlib.sha256(str(time.monotonic()).encode()).hexdigest()[:12],
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": body.get("model"),
        }
        size = max(1, turn.get("chunk_size", 12))
        delay = turn.get("chunk_delay", 0)
        out_chars, had_tools, tool_index = 0, False, 0

        def emit(delta, finish=None, **extra):
            chunk = {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **extra}
            self._write(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n")

        def pieces(text):
            for i in range(0, len(text), size):
                yield text[i : i + size]
                if delay:
                    self._wait(delay)

        emit({"role": "assistant", "content": ""})
        for step in turn.get("steps", []):
            if "text" in step:
                for piece in pieces(_text(step["text"])):
                    out_chars += len(piece)
                    emit({"content": piece})
            elif "reasoning" in step:
                for piece in pieces(_text(step["reasoning"])):
                    out_chars += len(piece)
                    emit({step.get("field", "reasoning_content"): piece})
            elif "tool_calls" in step:
                had_tools = True
                for call in step["tool_calls"]:
                    args = call.get("arguments", {})
                    args = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
                    call_id = call.get("id") or f"call_{int(time.monotonic() * 1e6):x}_{tool_index}"
                    emit(
                        {
                            "tool_calls": [
                                {
                                    "index": tool_index,
                                    "id": call_id,
                                    "type": "function",
                                    "function": {"name": call["name"], "arguments": ""},
                                }
                            ]
                        }
                    )
                    for piece in pieces(args):
                        out_chars += len(piece)
                        emit({"tool_calls": [{"index": tool_index, "function": {"arguments": piece}}]})
                    tool_index += 1
            elif "sleep" in step:
                self._wait(step["sleep"])
            elif step.get("hang"):
                self._wait(86400)
            elif step.get("drop"):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                raise _Gone()
            elif step.get("end"):
                self.wfile.write(b"0\r\n\r\n")
                return
            elif "sse_error" in step:
                self._write(b"data: " + json.dumps({"error": step["sse_error"]}).encode() + b"\n\n")
            elif "raw" in step:
                self._write(_text(step["raw"]).encode())
        finish = turn.get("finish_reason", "tool_calls" if had_tools else "stop")
        if finish is not None:
            emit({}, finish)
        usage = turn.get("usage", self._usage(body, out_chars))
        if usage is not None and (body.get("stream_options") or {}).get("include_usage"):
            self._write(b"data: " + json.dumps({**base, "choices": [], "usage": usage}).encode() + b"\n\n")
        if turn.get("done", True):
            self._write(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _responses(self, turn):
        """Stream texts and tool calls as OpenAI's Responses API does, which pi 1.x uses for GitHub Copilot."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

        def emit(kind, **fields):
            self._write(f"data: {json.dumps({'type': f'response.{kind}', **fields})}\n\n".encode())

        emit("created", response={"id": "resp_fake"})
        items = []
        for step in turn.get("steps", []):
            if "text" in step:
                text = _text(step["text"])
                part = {"type": "output_text", "text": text, "annotations": []}
                items.append({"type": "message", "role": "assistant", "content": [part]})
            for call in step.get("tool_calls", []):
                arguments = json.dumps(call.get("arguments", {}))
                items.append({"type": "function_call", "name": call["name"], "arguments": arguments})
        for index, item in enumerate(items):
            item |= {"id": f"item_{index}", "call_id": f"call_{index}", "status": "completed"}
            at = {"output_index": index, "item_id": item["id"]}
            empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
            emit("output_item.added", output_index=index, item={**item, **empty})
            if item["type"] == "message":
                part = item["content"][0]
                emit("content_part.added", **at, content_index=0, part={**part, "text": ""})
                emit("output_text.delta", **at, content_index=0, delta=part["text"])
            else:
                emit("function_call_arguments.delta", **at, delta=item["arguments"])
                emit("function_call_arguments.done", **at, arguments=item["arguments"])
            emit("output_item.done", output_index=index, item=item)
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        emit("completed", response={"id": "resp_fake", "status": "completed", "output": items, "usage": usage})
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    @staticmethod
    def _usage(body, out_chars):
        prompt = len(json.dumps(body.get("messages") or [])) // 4
        completion = max(1, out_chars // 4)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def _whole(self, body, turn):
        text, calls = "", []
        for step in turn.get("steps", []):
            if "text" in step:
                text += _text(step["text"])
            for call in step.get("tool_calls", []):
                args = call.get("arguments", {})
                calls.append(
                    {
                        "id": call.get("id", f"call_{len(calls)}"),
                        "type": "function",
                        "function": {
                            "name": call["name"],
                            "arguments": args if isinstance(args, str) else json.dumps(args),
                        },
                    }
                )
        message = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = calls
        self._json(
            200,
            {
                "id": "chatcmpl-fake",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": body.get("model"),
                "choices": [
                    {
                        "index": 0,
                        "message": message,
                        "finish_reason": turn.get("finish_reason", "tool_calls" if calls else "stop"),
                    }
                ],
                "usage": turn.get("usage") or self._usage(body, len(text)),
            },
        )


def main():
    parser = argparse.ArgumentParser(description="scripted OpenAI-compatible server on 127.0.0.1")
    parser.add_argument("scenario")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log")
    args = parser.parse_args()
    with open(args.scenario, encoding="utf-8") as fh:
        scenario = json.load(fh)
    server = FakeLLM(scenario, port=args.port, log_path=args.log)
    server.thread.start()
    print(json.dumps({"port": server.port, "base_url": server.base_url}), flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
