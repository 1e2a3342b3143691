"""Text with terminal commands, in every field of every record of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts
from subdeck.core.run.events import (
    AssistantText,
    ErrorReported,
    Notice,
    Retry,
    RunStarted,
    SessionTold,
    Thinking,
    ToolCall,
    ToolResult,
    UsageReported,
    encode_event,
)
from subdeck.core.run.model import Finalized, FinalizeStatus, Group, InheritedContext, Origin, RunMeta, Tools

from .factories import make_meta, make_result

T = TypeVar("T", bound=msgspec.Struct)

EVIL = (
    "\x1b]0;PWN\x07\x1b[31mPWN\x9b2J\x9d\x08\r\x7f\x00\u061c\u202e\u2066\u200f\u2028\ufeff\U000e0041\u180e"
    "[@click=app.quit]\ud800"
)
IN_JSON = EVIL.replace("\ud800", "")
"""The part that JSON in UTF-8 can contain."""
IN_YAML = IN_JSON.replace("\0", "").replace("\U000e0041", "")
"""The part that a settings file or a preset, written as JSON, can contain."""

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Repeated here, so that the code's own list is tested too."""


def controls(shown: str) -> list[str]:
    """Return characters that a terminal would obey, with the text around them."""
    return [ascii(shown[max(0, at.start() - 30) : at.end() + 10]) for at in CONTROL.finditer(shown)]


def planted(value: Any, kept: frozenset[str] = frozenset()) -> Any:
    """Return built-in values with hostile text after every text, except in the fields that are `kept`."""
    match value:
        case str():
            return f"{value}{IN_JSON}"
        case dict():
            return {name: item if name in kept else planted(item, kept) for name, item in value.items()}
        case list() | tuple():
            return [planted(item, kept) for item in value]
        case _:
            return value


def plant(record: T, *kept: str) -> T:
    return msgspec.convert(planted(msgspec.to_builtins(record), frozenset(kept)), type(record))


def hostile_meta(index: int) -> RunMeta:
    meta = make_meta(
        group=Group("g", index, 2, 2), preset="scout", preset_path="/p", description="d", requested_model="m",
        resolved_model="m", thinking="high", tools=Tools(resolved=("read",), warnings=("w",)), system_prompt="s",
        child_session_id="abcdefghij", session_path="s.jsonl", session_lock="l", inherited=InheritedContext(1, 2),
        origin=Origin("a", "b", "c"), warnings=("w",), background=True,
    )  # fmt: skip
    return plant(meta, "runId", "createdAt", "launchedBy")


def hostile_run(engine: Engine, *, ended: bool) -> tuple[str, int]:
    """Make the directory of a run with hostile text in all its records; return its id and its lock."""
    meta = hostile_meta(index=int(not ended))
    lock = artifacts.create_run(engine.project.runs, meta, f"do {EVIL}".encode("utf-8", "replace").decode())
    run_dir = Path(engine.project.run_dir(meta.run_id))
    now = paths.now_iso()
    events: list[Any] = [
        RunStarted(seq=1, pid=1, child_pid=2, attempt=1, max_attempts=2),
        AssistantText(seq=2, text=f"# {IN_JSON}\n```\n{IN_JSON}\n```"),
        Thinking(seq=3, text="t"),
        ToolCall(seq=4, tool_call_id="c", tool_name="bash", args={"command": "x", "deep": {"a": ["b"]}}),
        ToolResult(seq=5, tool_call_id="c", tool_name="bash", is_error=True, content="x"),
        ToolCall(seq=6, tool_call_id="d", tool_name="read", args={"path": "x"}),
        Retry(seq=7, attempt=1, max_attempts=2, delay_ms=1, reason="r"),
        Notice(seq=8, level="warning", text="n"),
        UsageReported(seq=9, input=1, output=1, cache_read=1, cache_write=1, cost=0.5, model="m", stop_reason="s"),
        ErrorReported(seq=10, message="e"),
        SessionTold(seq=11, id="i", conversation="/c"),
    ]
    lines = [encode_event(replace(plant(event, "type"), ts=now)) for event in events]
    lines.append(json.dumps({"type": f"new{IN_JSON}", "seq": 12, "ts": IN_JSON}).encode() + b"\n")
    lines.append(f"garbage {EVIL}\n".encode("utf-8", "replace"))
    (run_dir / paths.EVENTS).write_bytes(b"".join(lines))
    for name in (paths.STDERR, paths.STDOUT, paths.TRANSCRIPT, f"x{IN_JSON.replace(chr(0), '')}".replace("/", "")):
        (run_dir / name).write_bytes(f"line {EVIL}\n\x1b[31mPWN".encode("utf-8", "replace"))
    (run_dir / paths.STOP).write_text(
        json.dumps(planted({"by": "b", "force": False, "at": "a", "reason": "r"}, frozenset()))
    )
    facts: dict[str, Any] = {"kind": "process", "host": "h", "bootId": "b", "pidNamespace": "p", "pid": 1}
    if not ended:
        facts["tmux"] = {"socket": "s", "session": "s", "window": "w", "pane": "p"}  # a place cannot be made from this
    (run_dir / paths.RUNNER).write_text(json.dumps(planted(facts)))
    if ended:
        result = make_result(
            meta.run_id, artifacts.RunReason.MODEL_ERROR, signal="s", stop_reason="s", error_message="e",
            final_text="f", finalized=Finalized(FinalizeStatus.ERROR, "r", "e"), resolved_model="m",
            child_session_id="c", artifact_errors=("a",), not_ended=("n",),
        )  # fmt: skip
        artifacts.write_result(str(run_dir), plant(result, "runId", "status", "reason", "startedAt", "endedAt"))
    else:
        active = Path(engine.project.active)
        active.mkdir(parents=True, exist_ok=True)
        (active / meta.run_id).write_text(json.dumps({"seq": 20, "sentence": f"writing {IN_JSON}"}) + "\n")
    return meta.run_id, lock


def hostile_preset(project: Path) -> Path:
    """Write a preset with hostile name, description, model, tools and text, and one with a broken file."""
    fields = {"name": "evil", "description": f"d{IN_YAML}", "model": f"m/x{IN_YAML}", "thinking": "high"}
    places = project / ".pi/subagents"
    places.mkdir(parents=True, exist_ok=True)
    (places / "named.md").write_text(f"---\n{json.dumps({**fields, 'name': f'evil{IN_YAML}'})}\n---\n")
    (places / "broken\x1b[31mPWN.md").write_text("---\nname: \x1b[31mPWN\n  tools: [\n---\n")
    path = places / "evil\x1b]0;PWN\x07.md"
    path.write_text(f"---\n{json.dumps(fields)}\n---\n{IN_JSON}\n")
    return path
