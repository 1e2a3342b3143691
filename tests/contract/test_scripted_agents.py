"""The scripted agents use only messages that the recorded programs used."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .kinds import SCRIPTED

pytestmark = pytest.mark.processes

RECORDINGS = Path(__file__).parents[1] / "recordings"
SCRIPT = "parts\nthink Hm.\nbash echo hi; exit 3\nwrite It is\nsay  there."
FREE = frozenset({"args", "arguments", "input", "rawInput", "details", "modelUsage", "model_usage_since_last_result"})
"""Members whose own members have free names."""

Shapes = dict[str, set[str]]
"""Kind of message -> the paths of its members."""


def shapes(messages: Iterable[dict[str, Any]]) -> Shapes:
    found: Shapes = defaultdict(set)
    for message in messages:
        params = message.get("params") or {}
        update, item = params.get("update") or {}, params.get("item") or {}
        details = (message.get("subtype"), message.get("method"), update.get("sessionUpdate"), item.get("type"))
        inner = message.get("message")
        role = inner.get("role") if isinstance(inner, dict) else None
        name = " ".join(str(part) for part in (message.get("type"), *details, role) if part)
        if name:
            found[name].update(members(message))
    return found


def members(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"{path}.{name}"
            if name not in FREE:
                yield from members(member, f"{path}.{name}")
    elif isinstance(value, list):
        for member in value:
            yield from members(member, path)


def recorded(*places: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for place in places:
        for file in sorted((RECORDINGS / place).glob("*/stdout.jsonl*")):
            lines = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            for line in lines.splitlines():
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if isinstance(message, dict):
                    messages.append(message)
    return messages


def played(program: str, *words: str, lines: Iterable[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return a scripted agent's output for a script on stdin, or for these lines."""
    said = "".join(json.dumps(line) + "\n" for line in lines) or SCRIPT
    command = [sys.executable, "-I", "-S", str(SCRIPTED / program), *words]
    done = subprocess.run(command, input=said.encode(), capture_output=True, timeout=30, env={**os.environ})
    return [json.loads(line) for line in done.stdout.splitlines()]


def codex() -> list[dict[str, Any]]:
    task = {"threadId": "", "input": [{"type": "text", "text": SCRIPT}]}
    requests = (("initialize", {}), ("thread/start", {}), ("turn/start", task))
    return played("codex.py", "app-server", lines=[
        {"id": number, "method": method, "params": params} for number, (method, params) in enumerate(requests, 1)
    ])  # fmt: skip


def acp() -> list[dict[str, Any]]:
    script = SCRIPT.replace("bash echo hi; exit 3\n", "")  # it would ask, and no one answers
    task = {"prompt": [{"type": "text", "text": script}]}
    requests = (("initialize", {}), ("session/new", {"mcpServers": []}), ("session/prompt", task))
    return played("acp.py", lines=[
        {"id": number, "method": method, "params": params} for number, (method, params) in enumerate(requests)
    ])  # fmt: skip


PLAYED = {
    "pi": (lambda: played("pi.py", "--mode", "json"), ("1.5.2",)),
    "claude": (lambda: played("claude.py", "-p", "--allowedTools", "Bash"), ("agents/claude-code",)),
    "codex": (codex, ("codex",)),
    "acp": (acp, ("acp/claude", "acp/codex", "acp/qwen", "acp/gemini")),
}


@pytest.mark.parametrize("program", PLAYED)
def test_nothing_is_made_up(program: str) -> None:
    """Each message of a scripted agent, and each of its members, was seen in a recording of that kind."""
    play, places = PLAYED[program]
    said, known = shapes(play()), shapes(recorded(*places))
    assert len(said) >= 3
    assert {} == {name: unknown for name, paths in said.items() if (unknown := sorted(paths - known.get(name, set())))}
