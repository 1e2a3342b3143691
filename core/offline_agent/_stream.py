"""The agent's output: pi's events on stdout, and a session file in pi's format (JSONL version 3)."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from ._directory import Call, Outcome
from ._host import Host, emit, encoded

PROVIDER, MODEL = "offline", "reader"
"""The reported model, regardless of the requested one; no model is used."""

FINALIZE_TOOL = "subagent_finalize"
"""The structured result tool, if a pi extension provides it."""

PERMISSION, ALLOW, DENY = "subdeck: may this tool be called?", "allow", "deny"
"""The title of subdeck's permission dialog, and its answers; a colon and a reason may follow the second."""

PIECE = 24
"""Characters of one `text_delta`."""
MAX_WAITING_S = 1.5
"""Maximum seconds of pacing in a run."""

_HEADER = re.compile(rb'\{"type":"session",.{0,80}?"id":"([\w-]+)"')
_ENTRY = re.compile(rb'^\{"type":"\w+","id":"([^"]+)".*\}$', re.MULTILINE)
"""A whole entry of a session; a torn entry is skipped."""

_USAGE = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens"), 0)


class Session:
    """A session file; each entry is appended in one write. Without a path, nothing is kept."""

    def __init__(self, path: str | None, cwd: str) -> None:
        """Create a session, or continue the file's; raises SystemExit if the file is not a session."""
        self._path = path
        data = b""
        try:
            if path:
                with open(path, "rb") as file:
                    data = file.read()
        except FileNotFoundError:
            pass  # created with its first entry
        except OSError as error:
            raise SystemExit(f"Error: cannot open session {path}: {error.strerror}") from error
        header = _HEADER.match(data)
        if data and not header:
            raise SystemExit(f"Error: Session file is not a valid pi session: {path}")
        session_id = header[1].decode() if header else os.urandom(16).hex()
        self.header = {"type": "session", "version": 3, "id": session_id, "timestamp": _iso_now(), "cwd": cwd}
        self._ids = [entry_id.decode() for entry_id in _ENTRY.findall(data)]
        self.earlier_tasks = data.count(b'"message":{"role":"user"')
        self._pending = (b"" if data.endswith(b"\n") else b"\n") if data else encoded(self.header)
        """Written before the next entry: the header of a new file, the newline after a torn line."""

    def add(self, message: dict[str, Any]) -> None:
        entry_id, parent = f"{len(self._ids) + 1:08x}", self._ids[-1] if self._ids else None
        entry = {"type": "message", "id": entry_id, "parentId": parent, "timestamp": _iso_now(), "message": message}
        self._ids.append(entry_id)
        if self._path is None:
            return
        try:
            os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
            with open(self._path, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(self._pending + encoded(entry))
        except OSError as error:
            print(f"Warning: session {self._path} is not written: {error.strerror}", file=sys.stderr)
            self._path = None
        self._pending = b""


class Conversation:
    """Writes messages piece by piece, their calls, and the results."""

    def __init__(self, session: Session, pace: float, host: Host | None = None, asked: Sequence[str] = ()) -> None:
        """`pace`: seconds between two pieces of text, so that a text is seen being written; the tools in `asked` need
        the permission of `host` before each call.
        """
        self._session = session
        self._pace = pace
        self._host = host
        self._asked = asked
        self._waiting_left = MAX_WAITING_S
        self._turns = 0
        self._calls = 0
        self._heard: deque[str] = deque()
        self._written = ""
        """Text written so far of the current message."""

    def begin(self, prompt: str) -> None:
        self._turns = 0
        self._heard.clear()
        emit(type="agent_start")
        emit(type="turn_start")
        self._add({"role": "user", "content": _text(prompt)})

    def further(self) -> str:
        """Return the next message received during the turn; empty if there is none."""
        self._hear()
        return self._heard.popleft() if self._heard else ""

    def choose(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user to choose one; empty if there is no host or no valid answer."""
        answer = self._host.ask("select", question, options=[*choices]) if self._host else {}
        return next((choice for choice in choices if choice == answer.get("value")), "")

    def turn(self, text: str, calls: Sequence[Call], carry_out: Callable[[Call], Outcome]) -> list[Outcome]:
        """Write a text and make calls; return their outcomes."""
        if self._turns:
            emit(type="turn_start")
            self._hear()
        self._turns += 1
        named = {f"call_{self._session.earlier_tasks + 1}_{self._calls + n}": call for n, call in enumerate(calls, 1)}
        self._calls += len(calls)
        content = _text(text)
        content += [
            {"type": "toolCall", "id": key, "name": call.name, "arguments": call.args} for key, call in named.items()
        ]
        self._add({**_message(content), "stopReason": "toolUse" if calls else "stop"}, text)
        outcomes: list[Outcome] = []
        for call_id, call in named.items():
            call_fields = {"toolCallId": call_id, "toolName": call.name}
            emit(type="tool_execution_start", **call_fields, args=call.args)
            outcome = self._carry_out(call_id, call, carry_out)
            details = call.args if outcome.details is None else outcome.details
            result = {"content": _text(outcome.text), "details": details}
            emit(type="tool_execution_end", **call_fields, result=result, isError=outcome.is_error)
            self._add({"role": "toolResult", **call_fields, "content": result["content"], "isError": outcome.is_error})
            outcomes.append(outcome)
        emit(type="turn_end")
        return outcomes

    def answer(self, text: str, hands_over: bool, fault: str = "") -> None:
        """Write the answer, or pass it to the structured result tool; `fault`: why the task failed."""
        verdict = {"status": "ERROR", "error": fault} if fault else {"status": "SUCCESS"}
        calls = [Call(FINALIZE_TOOL, {**verdict, "result": text})] if hands_over else []
        self.turn("" if hands_over else text, calls, lambda _: Outcome("The result was received."))

    def end(self, *, aborted: bool = False) -> None:
        if aborted:
            message = {**_message(_text(self._written)), "stopReason": "aborted"}
            if not self._written:
                emit(type="message_start", message=message)
            emit(type="message_end", message=message)
            self._session.add(message)
            self._written = ""
        emit(type="agent_end", willRetry=False)
        emit(type="agent_settled", aborted=aborted)

    def _hear(self) -> None:
        """Add the messages received during the turn to the conversation."""
        if self._host is None:
            return
        self._host.look()
        for message in self._host.steered():
            self._add({"role": "user", "content": _text(message)})
            self._heard.append(message)

    def _carry_out(self, call_id: str, call: Call, carry_out: Callable[[Call], Outcome]) -> Outcome:
        if self._host is None:
            return carry_out(call)
        self._host.look()
        if not any(fnmatchcase(call.name, name) for name in self._asked):
            return carry_out(call)
        call_text = encoded({"id": call_id, "tool": call.name, "args": call.args}).decode().rstrip()
        answer = self._host.ask("input", PERMISSION, placeholder=call_text).get("value")
        if answer == ALLOW:
            return carry_out(call)
        why = str(answer or "").removeprefix(DENY).removeprefix(": ")
        return Outcome(f"Denied: {why}" if why else "Denied.", is_error=True)

    def _add(self, message: dict[str, Any], text: str = "") -> None:
        """Write a message; `text`: its text, if it is written piece by piece."""
        emit(type="message_start", message={**message, "content": []} if text else message)
        for start in range(0, len(text), PIECE):
            delta = {"type": "text_delta", "contentIndex": 0, "delta": text[start : start + PIECE]}
            emit(type="message_update", assistantMessageEvent=delta)
            self._written = text[: start + PIECE]
            self._wait()
        self._written = ""
        emit(type="message_end", message=message)
        self._session.add(message)

    def _wait(self) -> None:
        pause = self._pace if 0 < self._pace <= self._waiting_left else 0.0
        self._waiting_left -= pause
        if self._host:
            self._host.look(pause)
        elif pause:
            time.sleep(pause)


def _message(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "provider": PROVIDER, "model": MODEL, "usage": _USAGE}


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def _iso_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
