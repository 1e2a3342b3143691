"""Messages of a Codex app-server in tests, and the requests of a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from subdeck.core.agents.child import Start, Stream
from subdeck.core.run.events import Event
from subdeck.core.run.model import AgentSession, LaunchedBy, RunMeta

THREAD, TURN = "t-1", "u-1"
INITIALIZED = {"id": 1, "result": {"userAgent": "subdeck/0", "codexHome": "/srv/home/.codex"}}
SETTINGS = {"id": 2, "result": {"config": {"mcp_servers": {"shop": {"command": "x"}, "far": {"url": "http://x"}}}}}
OPENED = {
    "id": 3,
    "result": {
        "thread": {"id": THREAD, "path": "/srv/rollout.jsonl", "ephemeral": False, "parentThreadId": None},
        "model": "gpt",
        "modelProvider": "openai",
    },
}
TURN_STARTED = {"method": "turn/started", "params": {"threadId": THREAD, "turn": {"id": TURN}}}


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def told(method: str, thread: str = THREAD, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": thread, "turnId": TURN, **params}}


def item(stage: str, kind: str, thread: str = THREAD, **fields: Any) -> dict[str, Any]:
    return told(f"item/{stage}", thread, item={"type": kind, "id": "i-1", **fields})


def delta(text: str, thread: str = THREAD) -> dict[str, Any]:
    params = {"threadId": thread, "turnId": TURN, "itemId": "i-1", "delta": text}
    return {"method": "item/agentMessage/delta", "params": params, "emittedAtMs": 1}


def usage(total: int, last: int, turn: str = TURN, thread: str = THREAD) -> dict[str, Any]:
    sums = {name: {"inputTokens": tokens} for name, tokens in (("total", total), ("last", last))}
    return {
        "method": "thread/tokenUsage/updated",
        "params": {"threadId": thread, "turnId": turn, "tokenUsage": sums},
    }


def ended(status: str, thread: str = THREAD, turn: str = TURN, **fields: Any) -> dict[str, Any]:
    return {
        "method": "turn/completed",
        "params": {"threadId": thread, "turn": {"id": turn, "status": status, **fields}},
    }


def fed(stream: Stream, *messages: dict[str, Any]) -> list[Event]:
    return [event for message in messages for event in stream.feed(line(message))]


def start(run_dir: Path, session_id: str | None = None, **fields: Any) -> Start:
    (run_dir / "prompt.md").write_text("Look.")
    meta = RunMeta(
        run_id="20261122-120000-abcdef",
        task="Look.",
        agent="codex",
        agent_kind="codex",
        agent_command=("codex",),
        runner="process",
        created_at="",
        launched_by=LaunchedBy(session="operator", kind="cli"),
        **({"cwd": "/srv/shop", "agent_session": AgentSession()} | fields),
    )
    return Start(meta, str(run_dir), session_id=session_id)


def said(stream: Stream) -> list[dict[str, Any]]:
    return [json.loads(request) for request in stream.replies().splitlines()]
