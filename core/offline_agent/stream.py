"""What the agent writes: pi's JSON mode on stdout, and a session file in pi's form (JSONL version 3)."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from .directory import Call, Outcome

PROVIDER, MODEL = "offline", "reader"
"""What answers, whatever model was asked for: no model is behind it."""

FINALIZE_TOOL = "subagent_finalize"
"""What a result is handed over to, where an extension of pi offers it."""

PIECE = 24
"""Characters of one `text_delta`."""
MAX_WAITING_S = 1.5
"""What pacing may add to a run."""

_HEADER = re.compile(rb'\{"type":"session",.{0,80}?"id":"([\w-]+)"')
_ENTRY = re.compile(rb'^\{"type":"\w+","id":"([^"]+)".*\}$', re.MULTILINE)
"""A whole entry of a session; one that is torn is passed over."""

_USAGE = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens"), 0)


class Session:
    """A session file that entries are appended to, one write each; without a path nothing is kept."""

    def __init__(self, path: str | None, cwd: str) -> None:
        """Create a session, or continue the one in the file; raises SystemExit for a file that is not a session."""
        self._path = path
        data = b""
        try:
            if path:
                with open(path, "rb") as file:
                    data = file.read()
        except FileNotFoundError:
            pass  # it is made with its first entry
        except OSError as error:
            raise SystemExit(f"Error: cannot open session {path}: {error.strerror}") from error
        known = _HEADER.match(data)
        if data and not known:
            raise SystemExit(f"Error: Session file is not a valid pi session: {path}")
        session_id = known[1].decode() if known else os.urandom(16).hex()
        self.header = {"type": "session", "version": 3, "id": session_id, "timestamp": _iso_now(), "cwd": cwd}
        self._ids = [found.decode() for found in _ENTRY.findall(data)]
        self.earlier_tasks = data.count(b'"message":{"role":"user"')
        self._pending = (b"" if data.endswith(b"\n") else b"\n") if data else _encoded(self.header)
        """What goes to the file before the next entry: the header of a new one, the end of a torn line."""

    def add(self, message: dict[str, Any]) -> None:
        entry_id, parent = f"{len(self._ids) + 1:08x}", self._ids[-1] if self._ids else None
        entry = {"type": "message", "id": entry_id, "parentId": parent, "timestamp": _iso_now(), "message": message}
        self._ids.append(entry_id)
        if self._path is None:
            return
        try:
            os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
            with open(self._path, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(self._pending + _encoded(entry))
        except OSError as error:
            print(f"Warning: session {self._path} is not written: {error.strerror}", file=sys.stderr)
            self._path = None
        self._pending = b""


class Conversation:
    """One prompt's exchange: what is said, piece by piece, the calls that go with it, and their results."""

    def __init__(self, session: Session, pace: float) -> None:
        """Write the header; `pace`: seconds between two pieces of text, so that a sentence is seen being written."""
        self._session = session
        self._pace = pace
        self._waiting_left = MAX_WAITING_S
        self._turns = 0
        _emit(**session.header)

    def begin(self, prompt: str) -> None:
        _emit(type="agent_start")
        _emit(type="turn_start")
        self._add({"role": "user", "content": _text(prompt)})

    def turn(self, said: str, calls: Sequence[Call], carry_out: Callable[[Call], Outcome]) -> list[Outcome]:
        """Say something and carry out calls; return their outcomes."""
        if self._turns:
            _emit(type="turn_start")
        self._turns += 1
        named = {f"call_{self._session.earlier_tasks + 1}_{self._turns}_{n}": call for n, call in enumerate(calls, 1)}
        content = _text(said)
        content += [
            {"type": "toolCall", "id": key, "name": call.name, "arguments": call.args} for key, call in named.items()
        ]
        message = {"role": "assistant", "content": content, "provider": PROVIDER, "model": MODEL, "usage": _USAGE}
        self._add({**message, "stopReason": "toolUse" if calls else "stop"}, said)
        outcomes: list[Outcome] = []
        for call_id, call in named.items():
            about = {"toolCallId": call_id, "toolName": call.name}
            _emit(type="tool_execution_start", **about, args=call.args)
            outcome = carry_out(call)
            result = {"content": _text(outcome.text), "details": call.args}
            _emit(type="tool_execution_end", **about, result=result, isError=outcome.is_error)
            self._add({"role": "toolResult", **about, "content": result["content"], "isError": outcome.is_error})
            outcomes.append(outcome)
        _emit(type="turn_end")
        return outcomes

    def answer(self, text: str, hands_over: bool) -> None:
        """Say the answer, or give it to the tool that ends a conversation; then end."""
        calls = [Call(FINALIZE_TOOL, {"status": "SUCCESS", "result": text})] if hands_over else []
        self.turn("" if hands_over else text, calls, lambda _: Outcome("The result is handed over."))
        _emit(type="agent_end", willRetry=False)
        _emit(type="agent_settled", aborted=False)

    def _add(self, message: dict[str, Any], said: str = "") -> None:
        """Write a message; `said`: its text, where that comes piece by piece."""
        _emit(type="message_start", message={**message, "content": []} if said else message)
        for start in range(0, len(said), PIECE):
            delta = {"type": "text_delta", "contentIndex": 0, "delta": said[start : start + PIECE]}
            _emit(type="message_update", assistantMessageEvent=delta)
            if 0 < self._pace <= self._waiting_left:
                time.sleep(self._pace)
                self._waiting_left -= self._pace
        _emit(type="message_end", message=message)
        self._session.add(message)


def _emit(**event: Any) -> None:
    data = memoryview(_encoded(event))
    while data:
        data = data[os.write(1, data) :]


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def _encoded(value: dict[str, Any]) -> bytes:
    """Return one line of JSON, with its newline."""
    return f"{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n".encode("utf-8", "replace")


def _iso_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
