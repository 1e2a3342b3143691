"""Session files like pi's, with the branches, compactions and damage that a test needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEADER = {"type": "session", "version": 3, "id": "01a1ffba", "timestamp": "2026-11-21T20:09:18.326Z", "cwd": "/project"}

AT = {"timestamp": 1795291758418}
USAGE: dict[str, Any] = {"input": 200, "output": 20, "cacheRead": 1000, "cacheWrite": 0, "totalTokens": 1220}
USAGE["cost"] = {"input": 0.0002, "output": 0.00004, "cacheRead": 0.0001, "cacheWrite": 0, "total": 0.00034}


class SessionFile:
    """A growing session. Each method returns the id of its new entry."""

    def __init__(self, path: Path, header: dict[str, Any] | None = None) -> None:
        self.path = path
        self._count = 0
        self.leaf: str | None = None
        """Parent of the next entry. Set it to an earlier id to branch."""
        self.write(line(HEADER if header is None else header))

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def add(self, kind: str, **content: Any) -> str:
        self._count += 1
        entry_id = f"{self._count:08x}"
        place = {"id": entry_id, "parentId": self.leaf, "timestamp": "2026-11-21T20:09:18.409Z"}
        self.write(line({"type": kind, **place, **content}))
        self.leaf = entry_id
        return entry_id

    def user(self, text: str) -> str:
        return self.add("message", message={"role": "user", "content": [{"type": "text", "text": text}], **AT})

    def assistant(self, text: str = "", *, thinking: str = "", tool: str = "", model: str = "fake/test") -> str:
        provider, _, model_id = model.partition("/")
        blocks: list[dict[str, Any]] = []
        if thinking:
            blocks.append({"type": "thinking", "thinking": thinking, "thinkingSignature": "reasoning"})
        if text:
            blocks.append({"type": "text", "text": text})
        if tool:
            blocks.append({"type": "toolCall", "id": "call_0", "name": tool, "arguments": {"path": "src/app.py"}})
        said = {"role": "assistant", "content": blocks, "api": "openai-completions", "provider": provider}
        return self.add("message", message={**said, "model": model_id, "usage": USAGE, "stopReason": "stop", **AT})

    def output(self, text: str, *, tool: str = "read", is_error: bool = False) -> str:
        content = [{"type": "text", "text": text}]
        message = {"role": "toolResult", "toolCallId": "call_0", "toolName": tool, "content": content}
        return self.add("message", message={**message, "details": {}, "isError": is_error, **AT})

    def turn(self, name: str) -> None:
        """Add a question and its answer, distinguished by a name."""
        self.user(f"{name}?")
        self.assistant(f"{name}!")


def line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
