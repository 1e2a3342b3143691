"""A model on loopback that plays a script, in the three protocols that agents speak.

    POST …/chat/completions   OpenAI's chat completions (pi)
    POST …/responses          OpenAI's responses (Codex, and pi with GitHub Copilot)
    POST …/messages           Anthropic's messages (Claude Code); also …/messages/count_tokens
    GET  …/models             the names of the models

A script is a list of turns. A TURN is one answer of the model:

    {
      "steps": [STEP, …],            its texts and actions, in this order
      "when": {…},                   only a request that meets all of these gets this turn, before all others:
                                     "tools" (true or false: whether it offers any), "last_role", "last_contains"
                                     (a text in the last message), "any_contains" (in any), "once" (no second one)
      "delay": 0.0,                  seconds before the answer begins
      "chunk_size": 12,              characters of each piece of a text, and
      "chunk_delay": 0.0,            seconds after each
      "status": 429,                 an error instead of an answer, with its
      "body": {…} or "text",         and
      "headers": {…},
      "stop_reason": "max_tokens",   instead of "tool_use" after tool calls, or "end_turn"
      "usage": {"input": 100, "cache_read": 0, "cache_write": 0, "output": 20, "reasoning": 0}
    }

A STEP is one of

    {"text": "…"}                    a text may be {"repeat": ["ab", 1000]}
    {"thinking": "…"}
    {"tool_calls": [CALL, …]}        all at once; each {"name": "…", "arguments": {…} or "text as it is"},
                                     for Codex with a "namespace"
    {"sleep": 1.5}                   seconds
    {"until": "/a/path"}             nothing more, until this file exists
    {"hang": true}                   nothing more, until the agent disconnects
    {"drop": true}                   the connection breaks
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from . import protocols

Turn = dict[str, Any]
Body = dict[str, Any]
"""A request of an agent, as it was sent."""


def said(text: str, **turn: Any) -> Turn:
    """A turn of the model with only a text."""
    return {"steps": [{"text": text}], **turn}


def called(*calls: tuple[str, dict[str, Any]], text: str = "", **turn: Any) -> Turn:
    """A turn of the model that calls tools, each by name and arguments."""
    spoken = [{"text": text}] if text else []
    return {"steps": [*spoken, {"tool_calls": [{"name": name, "arguments": args} for name, args in calls]}], **turn}


def call(name: str, **arguments: Any) -> Turn:
    """A turn of the model that calls one tool."""
    return called((name, arguments))


def texts(request: Body, *roles: str) -> list[str]:
    """The texts of these roles in a request (default: the user), without Codex's own texts."""
    parts = [part for item in _items(request) if item.get("role") in (roles or ("user",)) for part in _parts(item)]
    own = ("<", "# AGENTS") if "input" in request else ()
    return [text for part in parts if not (text := _text(part)).startswith(own)]


def offered(request: Body) -> set[str]:
    """The names of the tools in a request."""
    tools = (tool.get("function", tool) for tool in request.get("tools") or ())
    return {tool.get("name") or tool["type"] for tool in tools}


def _items(request: Body) -> list[dict[str, Any]]:
    """The messages of a request, and in OpenAI's responses also the calls and results between them."""
    items = request.get("messages") or request.get("input") or []
    return [{"role": "user", "content": items}] if isinstance(items, str) else items


def _parts(item: dict[str, Any]) -> list[Any]:
    content = item.get("content") or []
    return content if isinstance(content, list) else [content]


def _text(value: Any) -> str:
    """All text in a message, an item, a part or a list of them."""
    if isinstance(value, dict):
        value = [value[key] for key in ("text", "thinking", "content", "output", "input", "arguments") if key in value]
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text, value)))
    return value if isinstance(value, str) else ""


class Script:
    """The turns of a model, and which of them is next."""

    def __init__(self, *turns: Turn, repeats: bool = True, is_each_from_the_start: bool = False) -> None:
        """After the last turn that one `repeats`, or every further request fails.

        Requests get the turns one after the other, from any client. `is_each_from_the_start` begins each conversation
        with the first turn instead.
        """
        self._repeats = repeats
        self._is_each_from_the_start = is_each_from_the_start
        self._conditional = [turn for turn in turns if "when" in turn]
        self._turns = [turn for turn in turns if "when" not in turn]
        self._asked = 0
        self._lock = threading.Lock()

    def pick(self, request: Body) -> Turn:
        with self._lock:
            for number, turn in enumerate(self._conditional):
                if _holds(turn["when"], request):
                    if turn["when"].get("once"):
                        del self._conditional[number]
                    return turn
            number = self._asked
            if self._is_each_from_the_start:
                number = sum(item.get("role") == "assistant" for item in _items(request))
            else:
                self._asked += 1
            if number < len(self._turns):
                return self._turns[number]
            return self._turns[-1] if self._turns and self._repeats else {"status": 400, "body": "the script is over"}


def _holds(when: dict[str, Any], request: Body) -> bool:
    items = _items(request)
    last = items[-1] if items else {}
    return (
        when.get("tools") in (None, bool(request.get("tools")))
        and when.get("last_role") in (None, last.get("role"))
        and when.get("last_contains", "") in _text(last)
        and when.get("any_contains", "") in _text(items)
    )


@dataclass
class Asked:
    """One request that has arrived."""

    body: Body
    headers: Mapping[str, str]
    """By their names in lower case."""
    at: float = field(default_factory=time.perf_counter)


class ModelServer:
    """Answers while it is entered; `requests` are those since the last script was set."""

    def __init__(self, *turns: Turn, models: Iterable[str] = (), scripts: Mapping[str, Script] | None = None) -> None:
        """`models` are the names to list; `scripts` are of models with their own."""
        self.requests: list[Asked] = []
        self.models = (*models, *(scripts or ()))
        self._script, self._scripts = Script(*turns), scripts or {}
        self._httpd = _Httpd(("127.0.0.1", 0), type("Handler", (_Handler,), {"server_of_models": self}))
        self.url = f"http://127.0.0.1:{self._httpd.server_address[1]}"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._httpd.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._httpd.shutdown()
        self._httpd.server_close()

    def script(self, *turns: Turn, **how: bool) -> None:
        """Set the model's answers to the next requests, and forget the earlier ones; see `Script` for `how`."""
        self.requests = []
        self._script = Script(*turns, **how)

    def pick(self, request: Body) -> Turn:
        return self._scripts.get(request.get("model", ""), self._script).pick(request)


class _Httpd(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A killed agent resets its connection; that is normal here."""


class _Handler(BaseHTTPRequestHandler):
    server_of_models: ClassVar[ModelServer]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that it replaces
        pass

    def do_GET(self) -> None:
        models = [{"id": name, "type": "model", "object": "model"} for name in self.server_of_models.models]
        path = self.path.partition("?")[0].rstrip("/")
        self.reply(200 if not path or path.endswith("/models") else 404, {"object": "list", "data": models})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        kind = self.path.partition("?")[0].rstrip("/").rpartition("/")[2]
        if kind == "count_tokens":
            return self.reply(200, {"input_tokens": max(1, len(raw) // 4)})
        if kind not in protocols.WRITERS:
            return self.reply(404, {"error": {"type": "not_found_error", "message": self.path}})
        asked = Asked(json.loads(raw), {name.lower(): value for name, value in self.headers.items()})
        turn = self.server_of_models.pick(asked.body)
        self.server_of_models.requests.append(asked)
        try:
            self.wait(turn.get("delay", 0))
            if (status := turn.get("status", 200)) != 200:
                return self.reply(status, turn.get("body", protocols.error(status)), turn.get("headers"))
            return protocols.WRITERS[kind](self, asked.body, turn).answer()
        except OSError:
            self.close_connection = True

    def reply(self, status: int, body: Body | str, headers: Mapping[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": len(data), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def wait(self, seconds: float) -> None:
        """Sleep; raise as for a broken connection if the agent disappears."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], min(0.05, left))
            if readable and self.connection.recv(1, socket.MSG_PEEK) == b"":
                raise ConnectionResetError
            if readable:  # more than it may send before the answer; it is read afterwards
                time.sleep(min(0.05, left))

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        """Send one piece of the stream; an empty one is its end."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def drop(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise ConnectionResetError
