"""The client in pi's rpc mode: commands on stdin, read while the agent works, and dialogs that the agent opens."""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from typing import Any

_CHUNK = 64 * 1024


class Aborted(Exception):
    """The turn has to end now."""


class Host:
    """Handles commands in order, each when the agent polls; it polls between any two steps."""

    def __init__(self, state: dict[str, Any]) -> None:
        """`state`: the session's part of the `get_state` response."""
        self._state = state
        self._unfinished_line = b""
        self._prompts: deque[str] = deque()
        self._steered: list[str] = []
        self._answers: dict[str, dict[str, Any]] = {}
        self._dialogs = 0
        self._aborts: list[Any] = []
        """Ids of unanswered abort commands."""
        self._is_working = False

    def prompt(self) -> str:
        """Wait for the next prompt. Raises SystemExit at the end of stdin."""
        self._is_working = False
        self._answer_aborts()
        while not self._prompts:
            self._read(None)
            self._answer_aborts()
        return self._prompts.popleft()

    def look(self, seconds: float = 0.0) -> None:
        """Handle the commands received within this time. Raises Aborted if one is an abort."""
        until = time.monotonic() + seconds
        while self._read(max(0.0, until - time.monotonic())):
            continue
        self._check()

    def steered(self) -> list[str]:
        """Return, once, the messages received during the turn."""
        messages, self._steered = self._steered, []
        return messages

    def ask(self, method: str, title: str, **dialog: Any) -> dict[str, Any]:
        """Open a dialog and wait for its answer. Raises Aborted if the turn ends first."""
        self._dialogs += 1
        dialog_id = f"dialog-{self._dialogs}"
        emit(type="extension_ui_request", id=dialog_id, method=method, title=title, **dialog)
        while dialog_id not in self._answers:
            self._check()
            self._read(None)
        return self._answers.pop(dialog_id)

    def _check(self) -> None:
        if self._aborts:
            raise Aborted

    def _answer_aborts(self) -> None:
        for command_id in self._aborts:
            _respond(command_id, "abort")
        self._aborts.clear()

    def _read(self, seconds: float | None) -> bool:
        """Handle input received within this time (None: no limit); return whether there was any."""
        if not select.select((0,), (), (), seconds)[0]:
            return False
        chunk = os.read(0, _CHUNK)
        if not chunk:
            raise SystemExit(0)
        *lines, self._unfinished_line = (self._unfinished_line + chunk).split(b"\n")
        for line in filter(None, lines):
            try:
                command: Any = json.loads(line)
            except ValueError as error:
                emit(type="response", command="parse", success=False, error=f"Failed to parse command: {error}")
                continue
            if isinstance(command, dict):
                self._take({**command})
        return True

    def _take(self, command: dict[str, Any]) -> None:
        name, command_id, text = command.get("type"), command.get("id"), str(command.get("message") or "")
        match name:
            case "extension_ui_response":
                self._answers[str(command_id)] = command
            case "prompt" if self._is_working and not command.get("streamingBehavior"):
                _refuse(command_id, name, "Agent is already processing.")
            case "prompt" if not self._is_working:
                self._is_working = True
                self._prompts.append(text)
                _respond(command_id, name, {"disposition": "started"})
            case "prompt" | "steer" | "follow_up":
                self._steered.append(text)
                _respond(command_id, name, {"disposition": "queued"})
            case "abort":
                self._aborts.append(command_id)
            case "clear_queue":
                _respond(command_id, name, {"steering": self.steered(), "followUp": []})
            case "get_state":
                queued = {"isStreaming": self._is_working, "pendingMessageCount": len(self._steered)}
                _respond(command_id, name, {**self._state, **queued, "isCompacting": False})
            case _:
                _refuse(command_id, str(name), f"Unknown command: {name}")


def _respond(command_id: Any, command: str, data: dict[str, Any] | None = None) -> None:
    emit(id=command_id, type="response", command=command, success=True, **({"data": data} if data else {}))


def _refuse(command_id: Any, command: str, why: str) -> None:
    emit(id=command_id, type="response", command=command, success=False, error=why)


# --- lines -----------------------------------------------------------------------------------------------------------


def emit(**event: Any) -> None:
    data = memoryview(encoded(event))
    while data:
        data = data[os.write(1, data) :]


def encoded(value: dict[str, Any]) -> bytes:
    """Return one line of JSON, with its newline."""
    return f"{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n".encode("utf-8", "replace")
